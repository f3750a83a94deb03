"""Searches find what was planted, keep to what is allowed, and their answers can be used as they are."""

import configparser
import json
import math
import os
import random
import re
import shlex
import shutil
import statistics
import subprocess
import sys

import pytest

import coreward
from coreward.tune import Choice, Method, Range, Score, Trial, covered, front, search, tune
from conftest import ROOT

SPACE = {
    "base_slice_ns": Range(100_000, 100_000_000, log=True),
    "spare_capacity_threshold": Range(0, 1024),
    "migration_cost_ns": Range(1000, 100_000_000, log=True),
    "nr_migrate": Range(1, 128),
    "TTWU_QUEUE": Choice((True, False)),
    "SIS_UTIL": Choice((True, False)),
}


def planted(setting):
    """100 at a slice of 3 ms, a threshold of 700, 50 us, 20 tasks, and both features off; less elsewhere."""
    off = [
        math.log10(setting["base_slice_ns"] / 3e6),
        (setting["spare_capacity_threshold"] - 700) / 400,
        math.log10(setting["migration_cost_ns"] / 50e3) / 2,
        (setting["nr_migrate"] - 20) / 50,
        0.5 * setting["TTWU_QUEUE"],
        0.5 * setting["SIS_UTIL"],
    ]
    return 100 - 20 * sum(part * part for part in off)


def best(sampler, seed, lengths=(1.0,)):
    noise = random.Random(seed)

    def evaluate(settings, length):
        return [Score((planted(setting) + noise.gauss(0, 1 / math.sqrt(length)),)) for setting in settings]

    tried = search(SPACE, evaluate, 1, Method(sampler, trials=200, batch=10, seed=seed, lengths=lengths))
    assert len(tried) == 200
    # what the measured best is worth without its noise
    return planted(front(tried)[0].setting)


def ahead(sampler, seeds):
    """How far a search's best is ahead of random search's in the mean, and the standard error of that."""
    own, other = [best(sampler, seed) for seed in seeds], [best("random", seed) for seed in range(100, 124)]
    error = math.sqrt(statistics.variance(own) / len(own) + statistics.variance(other) / len(other))
    return statistics.fmean(own) - statistics.fmean(other), error


@pytest.mark.parametrize("sampler", ["tpe", "nsga2"])
def test_a_planted_optimum_is_found_better_than_by_random_search(sampler):
    gain, error = ahead(sampler, range(4))
    assert gain > 3 * error, (gain, error)


def test_random_search_is_not_ahead_of_itself():
    gain, error = ahead("random", range(24))
    assert abs(gain) < 3 * error, (gain, error)


def test_halving_makes_few_whole_runs_and_still_finds_it():
    spent = []

    def evaluate(settings, length):
        spent.append(length * len(settings))
        return [Score((planted(setting),)) for setting in settings]

    method = Method("tpe", trials=90, batch=9, seed=1, lengths=(0.1, 0.3, 1.0), keep=3)
    tried = search(SPACE, evaluate, 1, method)
    assert [sum(trial.length == length for trial in tried) for length in method.lengths] == [60, 20, 10]
    assert sum(spent) == pytest.approx(90 * 0.1 + 30 * 0.3 + 10)
    assert max(trial.score.values[0] for trial in tried) == max(trial.score.values[0] for trial in front(tried))


@pytest.mark.parametrize("sampler", ["tpe", "nsga2"])
def test_a_front_keeps_to_what_is_allowed(sampler):
    """The planted optimum is forbidden: no slice may be longer than 1 ms. The second objective is against the first."""

    def evaluate(settings, length):
        return [
            Score((planted(setting), -setting["nr_migrate"]), math.log10(setting["base_slice_ns"] / 1e6)) for setting in settings
        ]

    tried = search(SPACE, evaluate, 2, Method(sampler, trials=100, batch=10, seed=3))
    found = front(tried)
    assert len(found) >= 2 and all(trial.setting["base_slice_ns"] <= 1_000_000 for trial in found)
    assert any(trial.score.values > found[0].score.values for trial in tried), "more would be had beyond"
    first, second = zip(*(trial.score.values for trial in found))
    assert list(first) == sorted(first, reverse=True) and list(second) == sorted(second)
    # the sampler learns what is allowed
    assert sum(not trial.score.allowed for trial in tried[50:]) < sum(not trial.score.allowed for trial in tried[:50])


def test_the_same_seed_is_the_same_search():
    def evaluate(settings, length):
        return [Score((planted(setting),)) for setting in settings]

    def settings(seed):
        return [trial.setting for trial in search(SPACE, evaluate, 1, Method("nsga2", 40, 8, seed))]

    assert settings(1) == settings(1) != settings(2)


def test_coverage_is_the_share_of_what_is_dominated():
    def trials(*values):
        return [Trial({}, 1.0, Score(pair), "tpe") for pair in values]

    one, other = trials((3, 1), (1, 3)), trials((2, 0), (0, 4))
    assert (covered(other, one), covered(one, other)) == (0.5, 0.0)
    assert front(one + other)[-1].score.values == (0, 4)


STUDY = """name = "small"
machines = ["1n2l2c2t"]
workloads = ["hackbench -g <cpus/4> -f 4 --threads --pipe -l 60"]
profile = "linux-6.12"
runs = 3
metrics = ["result", "cpu_migrations"]
guard = ["result"]
list = ["WAKEUP_BIAS_PREV"]

[vary]
WAKEUP_BIAS_PREV = [true, false]
base_slice_ns = { from = 200000, to = 20000000, log = true }
nr_migrate = [8, 32]

[search]
trials = 12
batch = 6
lengths = [0.5, 1]

[holdout]
machines = ["4c"]
workloads = ["perf bench sched pipe -l 300"]
runs = 4
"""


def command(*words, **options):
    ran = subprocess.run([sys.executable, "-m", "coreward.tune", *map(str, words)], capture_output=True, text=True, **options)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tune")
    file = directory / "study.toml"
    file.write_text(STUDY)
    words = [file, "--json", directory / "t.json", "--html", directory / "t.html", "--export", directory / "out"]
    status, out, errors = command(*words, "--state", directory / "state", cwd=ROOT)
    assert (status, errors) == (0, "")
    return directory, out


def test_a_study_is_the_same_again_and_makes_no_run_twice(found):
    directory, out = found
    kept = (directory / "state").read_bytes()
    seen = []
    again = tune(directory / "study.toml", state=directory / "state", jobs=1, progress=lambda *now: seen.append(now))
    assert seen == [(6, 24), (12, 24), (18, 24), (24, 24)], "two searches of two batches"
    assert str(again) == out
    assert again.json == (directory / "t.json").read_text()
    assert (directory / "state").read_bytes() == kept
    # killed in the middle of a line: what is missing is made, and the result is the same
    (directory / "part").write_bytes(kept[: len(kept) // 2])
    assert str(tune(directory / "study.toml", state=directory / "part")) == out


def test_a_study_shows_the_list_random_search_and_what_was_held_out(found):
    data = json.loads((found[0] / "t.json").read_text())
    assert [one["sampler"] for one in data["searches"]] == ["tpe", "random"]
    assert [one["full_length"] for one in data["searches"]] == [4, 4]
    known = next(setting for setting in data["settings"] if setting["setting"] == "WAKEUP_BIAS_PREV")
    assert known["found_by"] is None
    assert data["settings"][0]["found_by"] in ("tpe", "random")
    # a cell that was held out is not one that was searched on
    assert known["held_out"]["metrics"] != known["searched"]["metrics"]
    # other seeds, and the interval is around its mean
    mean = known["repeated"]["metrics"]["cpu_migrations"]
    assert mean["low"] < mean["mean"] < mean["high"]
    assert mean != known["searched"]["metrics"]["cpu_migrations"]


def test_a_score_is_what_a_comparison_says(found):
    data = json.loads((found[0] / "t.json").read_text())
    known = next(setting for setting in data["settings"] if setting["setting"] == "WAKEUP_BIAS_PREV")
    compared = coreward.compare(
        "hackbench -g 2 -f 4 --threads --pipe -l 60", "1n2l2c2t", "WAKEUP_BIAS_PREV", baseline="linux-6.12", runs=3
    )
    assert known["searched"]["metrics"]["cpu_migrations"]["mean"] == pytest.approx(compared.delta_pct("cpu_migrations"))
    result = compared.cases[0]["headline"][0]
    assert known["searched"]["metrics"]["result"]["mean"] == pytest.approx(compared.delta_pct(result))


def test_the_page_has_every_setting_and_a_plot(found):
    page = (found[0] / "t.html").read_text()
    data = json.loads((found[0] / "t.json").read_text())
    for setting in data["settings"]:
        assert page.count(setting["setting"]) >= 2
    assert 'aria-label="The settings by their objectives' in page and page.count("<h2>The settings: ") == 2
    assert page.count('class="floor"') == 2, "the baseline and the first setting"
    assert "nan" not in page.lower() and "src=" not in page and "href=" not in page
    # the command of the worst cell makes the same runs
    worst = data["settings"][0]["repeated"]["worst"]
    words = shlex.split(worst["command"])[1:]
    compared = json.loads(coreward._native.call([*words, "--json"], False)[0])
    assert compared["variants"][0]["delta_pct"][compared["headline"][0]] == pytest.approx(worst["delta_pct"])


def test_outputs_are_written_as_the_commands_write_theirs(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace("trials = 12", "trials = 2"))
    secret, link, null = tmp_path / "secret.json", tmp_path / "link.json", tmp_path / "null.html"
    secret.touch(0o600)
    link.symlink_to("secret.json")
    null.symlink_to("/dev/null")
    assert command(file, "--json", link, "--html", null, cwd=ROOT)[0] == 0
    assert secret.stat().st_mode & 0o777 == 0o600 and link.is_symlink() and null.is_char_device()
    assert json.loads(secret.read_text())["settings"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "null.html", "secret.json", "study.toml"]
    # refused before anything is run
    missing = tmp_path / "no" / "t.json"
    for option, target, why in [
        ("--json", file, "it is an input"),
        ("--html", tmp_path, "it is a directory"),
        ("--json", missing, "No such file or directory (os error 2)"),
    ]:
        assert command(file, option, target) == (2, "", f"coreward: {option}: cannot write {target}: {why}\n")
    assert command(file, "--json", secret, "--html", link) == (2, "", "coreward: --json and --html name the same file\n")


def test_a_study_is_a_regular_file_of_bounded_depth(tmp_path):
    pipe, deep = tmp_path / "pipe.toml", tmp_path / "deep.toml"
    os.mkfifo(pipe)
    deep.write_text("a = " + "[" * 100_000)
    assert command(pipe, timeout=60) == (2, "", f"coreward: cannot read {pipe}: it is not a regular file\n")
    assert command(deep) == (2, "", f"coreward: {deep}: it is nested too deeply\n")


def test_a_name_commands_nobody(tmp_path):
    from coreward.tune._export import exports

    name = "a\n[Service]\nExecStart=/bin/false\n${f:exec:/bin/false}\x1b]0;x\x07"
    said = exports(name, "linux-6.12", "NO_TTWU_QUEUE")
    plain = exports("plain", "linux-6.12", "NO_TTWU_QUEUE")
    for hostile, harmless in [(said.drop_in, plain.drop_in), (said.tuned, plain.tuned), (said.script, plain.script)]:
        assert len(hostile.splitlines()) == len(harmless.splitlines())
        assert "\x1b" not in hostile and "${f:" not in hostile
    # nor in the text that a terminal shows
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace("trials = 12", "trials = 2").replace('name = "', 'name = "\\u001b]0;x\\u0007\\u202e', 1))
    status, out, errors = command(file, cwd=ROOT)
    assert (status, errors) == (0, "")
    assert "\\u{1b}]0;x\\u{7}\\u{202e}" in out and not set(out) & {"\x1b", "\x07", "\u202e"}


@pytest.fixture
def exported():
    """A setting with each kind of change."""
    from coreward.tune._export import exports

    return exports("all", "linux-6.12", "NO_TTWU_QUEUE", "WAKEUP_BIAS_PREV,TTWU_QUEUE,NO_SIS_UTIL,base_slice_ns=2ms,nr_migrate=8,relax_domain_level=1")


def test_the_options_are_those_of_live(exported, cli, tmp_path):
    """Alone in its directory, the program finds no coreward-live; it says so once it has accepted the options."""
    program = shutil.copy(os.environ.get("COREWARD", ROOT / "target/release/coreward"), tmp_path)

    def live(*options):
        ran = subprocess.run([program, "live", *options], capture_output=True, text=True, env={"PATH": str(tmp_path)})
        return ran.stderr

    assert "coreward-live is neither beside this program nor in PATH" in live(*exported.live.split())
    assert "coreward-live" not in live("--no-such-option")
    help_text = cli("live", "--help")[1]
    for option in exported.live.split():
        assert option.split("=")[0] in help_text
    known = {feature["name"] for feature in coreward.features("linux-6.12")}
    assert set(re.findall(r"--sched-feat=(?:NO_)?(\w+)|--set=(\w+)", exported.live)) <= {(k, "") for k in known} | {("", k) for k in known}
    # what the setting says replaces what the baseline says
    assert "TTWU_QUEUE" in exported.live and "NO_TTWU_QUEUE" not in exported.live


def test_the_script_sets_checks_and_puts_back(exported, tmp_path):
    exported.write(tmp_path)
    debugfs = tmp_path / "sched"
    debugfs.mkdir()
    before = {"features": "NO_TTWU_QUEUE SIS_UTIL\n", "base_slice_ns": "3000000\n", "nr_migrate": "32\n"}
    for name, value in before.items():
        (debugfs / name).write_text(value)
    environment = {**os.environ, "SCHED": str(debugfs), "SAVED": str(tmp_path / "saved"), "CPUS": "4"}

    def script(action):
        return subprocess.run([tmp_path / "sched.sh", action], env=environment, capture_output=True, text=True)

    assert script("verify").returncode == 1
    # a plain file keeps only the last word that is written to it, where the kernel's has all
    (debugfs / "features").write_text("TTWU_QUEUE NO_SIS_UTIL\n")
    assert script("start").stderr == ""
    assert (debugfs / "base_slice_ns").read_text() == "6000000\n", "times 1 + log2(4)"
    assert (debugfs / "nr_migrate").read_text() == "8\n"
    assert script("stop").stderr == ""
    assert (debugfs / "base_slice_ns").read_text() == before["base_slice_ns"]
    assert (debugfs / "nr_migrate").read_text() == before["nr_migrate"]
    assert script("restart").returncode == 2
    assert exported.not_in_kernel == ("WAKEUP_BIAS_PREV", "relax_domain_level=1")
    for what in exported.not_in_kernel:
        assert f"# no kernel has a file for {what}\n" in exported.script


def test_tuned_reads_the_profile(exported, tmp_path):
    exported.write(tmp_path)
    profile = configparser.ConfigParser(interpolation=None, strict=True)
    profile.read(tmp_path / "tuned.conf")
    assert profile.sections() == ["main", "script"]
    # TuneD puts its own directory of the profile there
    script = profile["script"]["script"].replace("${i:PROFILE_DIR}", str(tmp_path))
    assert os.access(script, os.X_OK)


def test_systemd_takes_the_drop_in(exported, tmp_path):
    exported.write(tmp_path)
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str
    unit.read(tmp_path / "coreward.service.d" / "tune.conf")
    assert unit["Service"]["Environment"] == f'"OPTIONS={exported.live}"'
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    service = (ROOT / "contrib" / "coreward.service").read_text().replace("/usr/local/bin/coreward-live", "/bin/true")
    (tmp_path / "coreward.service").write_text(service)

    def verify():
        words = ["systemd-analyze", "verify", "--man=no", tmp_path / "coreward.service"]
        said = subprocess.run(words, capture_output=True, text=True).stderr
        return [line for line in said.splitlines() if "tune.conf" in line]

    assert verify() == []
    drop_in = tmp_path / "coreward.service.d" / "tune.conf"
    drop_in.write_text(drop_in.read_text().replace('Environment="', 'Enviroment="'))
    assert len(verify()) == 1, "it is read at all"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("name =", "nam ="), "name is missing"),
        (("runs = 3", "runs = 1"), "runs is 1, allowed are 2 to 1000"),
        (("runs = 3", "runs = 3\nrun = 3"), "unknown key run"),
        (("nr_migrate", "nr_migrat"), "vary.nr_migrat: no feature or tunable is called so"),
        (("from = 200000", "from = 0"), "vary.base_slice_ns: allowed are a list of values and "),
        (("to = 20000000", "to = 900000000"), "base_slice_ns"),
        (("[8, 32]", "[]"), "vary.nr_migrate: allowed are"),
        (("[0.5, 1]", "[0.5]"), "search.lengths is [0.5], allowed are increasing fractions"),
        (("trials = 12", 'trials = 12\nsampler = "grid"'), "search.sampler is grid, allowed are tpe and nsga2"),
        (("linux-6.12", "linux-9.9"), "unknown profile `linux-9.9`"),
        (('"4c"', '"epyc"'), "machines: "),
        (('"result", "cpu', '"wakeups", "cpu'), "metrics: neither direction of wakeups is better"),
        (('"result", "cpu', '"nothing", "cpu'), "metrics: no run has nothing"),
        (("[vary]", "[vary"), "t.toml: "),
    ],
)
def test_bad_input_is_refused_in_one_line(change, message, tmp_path):
    file = tmp_path / "t.toml"
    assert change[0] in STUDY
    file.write_text(STUDY.replace(*change, 1))
    kept = tmp_path / "kept.json"
    kept.write_text("old")
    status, out, errors = command(file, "--json", kept, cwd=ROOT)
    assert (status, out, errors.count("\n")) == (2, "", 1), errors
    assert errors.startswith("coreward: ") and message in errors, errors
    assert kept.read_text() == "old"


def test_a_missing_file_or_library_is_said_in_one_line(tmp_path):
    assert command(tmp_path / "none.toml") == (2, "", f"coreward: cannot read {tmp_path / 'none.toml'}: No such file or directory (os error 2)\n")
    hidden = tmp_path / "optuna.py"
    hidden.write_text("raise ModuleNotFoundError('No module named optuna', name='optuna')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    status, _, errors = command("t.toml", env=environment)
    assert (status, errors) == (2, "coreward: tune needs the Python package optuna: pip install 'optuna>=5,<6' scipy\n")


def test_the_command_starts_the_search_and_has_its_options(cli, tmp_path):
    program = os.environ.get("COREWARD", str(ROOT / "target/release/coreward"))
    here = os.path.dirname(sys.executable)

    def tune_by_command(*words, path=here):
        ran = subprocess.run([program, "tune", *words], capture_output=True, text=True, env={"PATH": str(path)}, cwd=ROOT)
        return ran.returncode, ran.stdout, ran.stderr

    missing = ("none.toml", "--state=s")
    assert tune_by_command(*missing) == command(*missing, cwd=ROOT) == (2, "", "coreward: cannot read none.toml: No such file or directory (os error 2)\n")

    def options(text):
        return set(re.findall(r"--[a-z]+", text))

    assert options(cli("tune", "--help")[1]) == options(command("--help")[1])
    # a Python that has no packages
    os.symlink(sys._base_executable, tmp_path / "python3")
    status, _, errors = tune_by_command("none.toml", path=tmp_path)
    assert (status, errors.count("\n")) == (2, 1) and "tune needs the Python package coreward, which " in errors
    assert tune_by_command("none.toml", path=tmp_path / "nowhere")[2].startswith("coreward: cannot run python3: ")
    assert cli("tune", "none.toml", "--job", "3")[0] == 2

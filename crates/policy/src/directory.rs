//! A policy of the user's own: a directory with headers and tables of `policy/` that were changed. What it
//! does not have is coreward's. The C compiler makes a library of it, which is kept and loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_char};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use libloading::Library;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::code::{Code, Tables};
use crate::generated::native::Native;
use crate::profile::{self, FeatureInfo, TunableInfo};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// What the compiler is given in addition to the tree: assertions, and the tables as data.
const ADDED: [(&str, &str); 2] =
    [("layout.c", include_str!("generated/layout.c")), ("directory.c", include_str!("directory.c"))];

/// Files that say what coreward itself calls and knows.
const FIXED: [&str; 3] = ["native.c", "native.h", "profiles.def"];

/// As the built-in policy is compiled; no start files, which would have variables of their own.
const FLAGS: [&str; 7] = ["-std=c11", "-O2", "-fPIC", "-shared", "-nostartfiles", "-Wl,-Bsymbolic", "-I."];

/// The largest header or table, many times the size of any built-in one.
const MAX_FILE_KIB: u64 = 1024;

/// How the library's file name begins.
const NAME: &str = "policy-";

/// Headers, tables and tests of a policy, by their paths.
pub struct Tree {
    directory: PathBuf,
    files: BTreeMap<String, String>,
}

impl Tree {
    /// The built-in files that a directory may replace, and the Makefile that runs their tests.
    pub fn changeable() -> impl Iterator<Item = (&'static str, &'static str)> {
        let names =
            |name: &str| !FIXED.contains(&name) && !name.starts_with("bpf_") && !name.ends_with(".md");
        FILES.iter().copied().filter(move |(name, _)| names(name))
    }

    /// Those of a directory; where it has none, the built-in ones.
    ///
    /// # Errors
    /// It cannot be read, has no file of a policy, or changes one that cannot be changed.
    pub fn of(directory: &Path) -> Result<Tree, String> {
        let shown = directory.display();
        if !directory.is_dir() {
            return Err(format!("{shown}: it is not a directory"));
        }
        let mut files: BTreeMap<_, _> =
            FILES.iter().map(|&(n, text)| (n.to_owned(), text.to_owned())).collect();
        let built_in = files.clone();
        let folders = FILES.iter().map(|(name, _)| name.rsplit_once('/').map_or("", |(folder, _)| folder));
        let folders: BTreeSet<&str> = folders.collect();
        has_no_other(directory, &folders)?;
        let mut found = 0;
        for folder in folders {
            for name in names(&directory.join(folder), folder)? {
                let path = directory.join(&name);
                let text = coreward_input::read_text(&path, MAX_FILE_KIB)
                    .map_err(|e| format!("{}: {e}", path.display()))?;
                if FIXED.contains(&name.as_str()) && built_in.get(&name) != Some(&text) {
                    return Err(format!(
                        "{}: it is not this coreward's, and a directory cannot change it (remove it)",
                        path.display()
                    ));
                }
                files.insert(name, text);
                found += 1;
            }
        }
        if found == 0 {
            return Err(format!(
                "{shown}: it has no header or .def file of a policy (coreward policy new writes some)"
            ));
        }
        Ok(Tree { directory: directory.into(), files })
    }

    /// Writes all files below `to`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, to: &Path) -> io::Result<()> {
        for (name, text) in &self.files {
            let path = to.join(name);
            fs::create_dir_all(path.parent().unwrap_or(to))?;
            fs::write(path, text)?;
        }
        Ok(())
    }

    /// A number that changes with whatever the library is made of.
    fn key(&self, compiler: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        let files: Vec<_> = self.files.iter().filter(|(name, _)| !name.starts_with("tests/")).collect();
        (files, ADDED, FLAGS, compiler).hash(&mut hasher);
        hasher.finish()
    }

    /// Compiles the library to `object`, by way of a file beside it.
    fn compile(&self, compiler: &str, object: &Path) -> Result<(), String> {
        let cannot = |e: io::Error| format!("{}: cannot compile it: {e}", self.directory.display());
        let scratch = tempfile::tempdir().map_err(cannot)?;
        self.write(scratch.path()).map_err(cannot)?;
        for (name, text) in ADDED {
            fs::write(scratch.path().join(name), text).map_err(cannot)?;
        }
        let beside = object.parent().unwrap_or(Path::new("."));
        let made = tempfile::NamedTempFile::new_in(beside).map_err(cannot)?;
        let ran = Command::new(compiler)
            .args(FLAGS)
            .args(["directory.c", "-o"])
            .arg(made.path())
            .current_dir(scratch.path())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(|e| {
                format!(
                    "{}: it needs a C compiler: {compiler}: {e} (CC names another one)",
                    self.directory.display()
                )
            })?;
        if !ran.status.success() {
            return Err(self.refused(&String::from_utf8_lossy(&ran.stderr)));
        }
        self.has_no_variables(&fs::read(made.path()).map_err(cannot)?)?;
        made.persist(object).map_err(|e| cannot(e.error))?;
        Ok(())
    }

    /// What is wrong, in one sentence, from what the compiler says.
    fn refused(&self, said: &str) -> String {
        let directory = self.directory.display();
        let error = said.lines().find(|line| line.contains("error:")).unwrap_or(said.trim());
        let (_, what) = error.split_once("error: ").unwrap_or(("", error));
        let stay = "structures and constants must stay as they are, and tables may only be appended to";
        if let Some((assertion, _)) = what.split_once(": make bindings") {
            let name = assertion.rsplit(['"', '\'']).next().unwrap_or(assertion);
            return format!(
                "{directory}: {} differs from this coreward's: {stay}",
                name.trim_start_matches(": ")
            );
        }
        if error.starts_with("layout.c") {
            return format!("{directory}: {what}: {stay}");
        }
        self.directory.join(error.trim_start_matches("./")).display().to_string()
    }

    /// Runs happen side by side in one process, and each must be as if it were alone.
    fn has_no_variables(&self, object: &[u8]) -> Result<(), String> {
        let directory = self.directory.display();
        let elf = ElfFile64::<object::Endianness>::parse(object).map_err(|e| {
            format!("{directory}: the compiler's output is not a library of this machine: {e}")
        })?;
        let writable = |name: &str| {
            let variables = [".data", ".bss", ".tdata", ".tbss"].iter().any(|start| name.starts_with(start));
            variables && !name.starts_with(".data.rel.ro")
        };
        for symbol in elf.symbols().filter(|s| matches!(s.kind(), SymbolKind::Data | SymbolKind::Tls)) {
            let section = symbol.section_index().and_then(|index| elf.section_by_index(index).ok());
            if section.is_some_and(|section| section.name().is_ok_and(writable)) {
                return Err(format!(
                    "{directory}: the variable `{}` is not constant: a policy keeps its state in struct cw_sys, \
                     so that runs are independent of each other",
                    symbol.name().unwrap_or("?")
                ));
            }
        }
        Ok(())
    }
}

/// A header in a folder with another name would be overlooked.
fn has_no_other(directory: &Path, folders: &BTreeSet<&str>) -> Result<(), String> {
    let entries = fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
        let name = entry.file_name();
        let known = name.to_str().is_some_and(|name| folders.contains(name));
        if !known && !names(&entry.path(), "")?.is_empty() {
            let allowed: Vec<_> = folders.iter().filter(|folder| !folder.is_empty()).copied().collect();
            return Err(format!(
                "{}: the policy has no such folder, allowed are {}",
                entry.path().display(),
                allowed.join(", ")
            ));
        }
    }
    Ok(())
}

/// Paths of the policy's files in one folder; none if the folder does not exist.
fn names(path: &Path, folder: &str) -> Result<Vec<String>, String> {
    let entries = match fs::read_dir(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|e| format!("{}: {e}", path.display()))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|e| format!("{}: {e}", path.display()))?.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let of_policy = match name.rsplit_once('.') {
            Some((_, "h" | "def")) => true,
            Some((_, "c")) => folder == "tests" || FIXED.contains(&name),
            _ => false,
        };
        if of_policy {
            names.push(if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") });
        }
    }
    Ok(names)
}

/// Where libraries are kept.
fn cache() -> Option<PathBuf> {
    let of = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")))?.join("coreward");
    fs::create_dir_all(&cache).is_ok().then_some(cache)
}

/// A library that nobody has used for so long is removed when another one is made.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);

/// Is the library there, and all of it? Loading what a crash or a full disk has left of one would end the process. The table
/// of its sections stands at its end.
fn is_whole(object: &Path) -> bool {
    fs::read(object).is_ok_and(|bytes| ElfFile64::<object::Endianness>::parse(&*bytes).is_ok())
}

/// Notes in the file's time of modification that the library is used. The directory may belong to somebody else; then it
/// is at worst compiled again.
fn used_now(object: &Path) {
    let file = fs::File::options().append(true).open(object);
    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
}

/// Removes the libraries of a cache that have not been used since [`UNUSED`] before `now`.
fn remove_unused(cache: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(cache) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(NAME) && name.ends_with(".so"));
        let used = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > UNUSED));
        if is_ours && is_old {
            // another process may have removed it
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What has been loaded, by directory and content.
static LOADED: Mutex<BTreeMap<(PathBuf, u64), &'static Code>> = Mutex::new(BTreeMap::new());

impl Code {
    /// That of a directory, which is compiled unless a library of the same text is kept from before.
    ///
    /// # Errors
    /// The directory is refused, does not compile, or has other structures than coreward's; the message names it.
    pub fn of_directory(directory: &Path) -> Result<&'static Code, String> {
        let tree = Tree::of(directory)?;
        let compiler = std::env::var("CC").ok().filter(|cc| !cc.is_empty()).unwrap_or_else(|| "cc".into());
        let key = tree.key(&compiler);
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = loaded.get(&(directory.into(), key)) {
            return Ok(code);
        }
        let unkept = tempfile::tempdir().map_err(|e| format!("{}: {e}", directory.display()))?;
        let kept = cache().unwrap_or_else(|| unkept.path().into());
        let object = kept.join(format!("{NAME}{key:016x}.so"));
        if is_whole(&object) {
            used_now(&object);
        } else {
            tree.compile(&compiler, &object)?;
            remove_unused(&kept, SystemTime::now());
        }
        let code =
            load(&object, directory, key).map_err(|what| format!("{}: {what}", directory.display()))?;
        let code: &'static Code = Box::leak(Box::new(code));
        loaded.insert((directory.into(), key), code);
        Ok(code)
    }
}

/// A library that [`Tree::compile`] made. It is never unloaded.
fn load(object: &Path, directory: &Path, key: u64) -> Result<Code, String> {
    // SAFETY: the library has no initializers; it is code that the user asked for.
    let library = unsafe { Library::new(object) }.map_err(|e| e.to_string())?;
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: it did not compile if its functions, structures or tables were others; see directory.c.
    let (native, tables) = unsafe { (Native::of(library).map_err(|e| e.to_string())?, tables(library)?) };
    for f in tables.features {
        if !profile::is_list_of_kernels(f.kernels) {
            return Err(format!(
                "features.def: the kernels of {} are `{}`, allowed are ranges like 6.5..6.12",
                f.name, f.kernels
            ));
        }
        if f.name.starts_with("NO_") {
            return Err(format!("features.def: {} begins with NO_, which switches a feature off", f.name));
        }
    }
    if let Some(t) = tables.tunables.iter().find(|t| !(t.min..=t.max).contains(&t.default)) {
        return Err(format!(
            "features.def: the default of {} is {}, not {} to {}",
            t.name, t.default, t.min, t.max
        ));
    }
    Ok(Code { native, tables, directory: Some(directory.into()), key })
}

/// # Safety
/// The library is compiled from directory.c.
unsafe fn tables(library: &'static Library) -> Result<Tables, String> {
    // SAFETY: directory.c defines an array of this type by each name, and how long it is.
    unsafe {
        let lengths: &[u32] = slice(library, "cw_lengths", 5)?;
        let &[features, tunables, reasons, queue_reasons, notes] = lengths else {
            unreachable!("five lengths")
        };
        let features = strings::<4>(library, "cw_features", features)?;
        let values: &[[i64; 3]] = slice(library, "cw_tunable_values", tunables)?;
        let tunables = strings::<3>(library, "cw_tunables", tunables)?;
        let bits: &[u32] = slice(library, "cw_note_bits", notes)?;
        let notes = strings::<2>(library, "cw_notes", notes)?;
        let pairs = |name, length| -> Result<_, String> {
            let pairs = strings::<2>(library, name, length)?;
            Ok(leaked(pairs.into_iter().map(|[name, text]| (name, text))))
        };
        let feature =
            |[name, kernels, seed, help]: [&'static str; 4]| FeatureInfo { name, kernels, seed, help };
        let tunable = |([name, unit, help], &[default, min, max]): ([&'static str; 3], &[i64; 3])| {
            TunableInfo { name, default, min, max, unit, help }
        };
        Ok(Tables {
            features: leaked(features.into_iter().map(feature)),
            tunables: leaked(tunables.into_iter().zip(values).map(tunable)),
            reasons: pairs("cw_reasons", reasons)?,
            queue_reasons: pairs("cw_queue_reasons", queue_reasons)?,
            notes: leaked(notes.into_iter().zip(bits).map(|([name, text], bit)| (*bit, name, text))),
        })
    }
}

fn leaked<T>(rows: impl Iterator<Item = T>) -> &'static [T] {
    Vec::leak(rows.collect())
}

/// # Safety
/// The library has an array of so many `T` by this name.
unsafe fn slice<T>(library: &'static Library, name: &str, length: u32) -> Result<&'static [T], String> {
    // SAFETY: as the caller says; the library stays.
    unsafe {
        let array = library.get::<*const T>(name.as_bytes()).map_err(|e| e.to_string())?;
        Ok(std::slice::from_raw_parts(*array, length as usize))
    }
}

/// # Safety
/// The library has an array of so many rows of `N` strings by this name.
unsafe fn strings<const N: usize>(
    library: &'static Library,
    name: &str,
    length: u32,
) -> Result<Vec<[&'static str; N]>, String> {
    // SAFETY: as the caller says.
    let rows = unsafe { slice::<[*const c_char; N]>(library, name, length) }?;
    let mut out = Vec::new();
    for row in rows {
        let mut texts = [""; N];
        for (text, string) in texts.iter_mut().zip(row) {
            // SAFETY: it is a string literal of C.
            let string = unsafe { CStr::from_ptr(*string) };
            *text = string.to_str().map_err(|_| format!("{name}: {string:?} is not UTF-8"))?;
        }
        out.push(texts);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FEATURES, Profile, System};

    /// A directory with these changes to files of the policy: path, old text, new text.
    fn changed(changes: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, from, to) in changes {
            let path = directory.path().join(name);
            let built_in = || FILES.iter().find(|(file, _)| file == name).unwrap().1.to_owned();
            let text = fs::read_to_string(&path).unwrap_or_else(|_| built_in());
            assert!(text.contains(from), "{name}: {from}");
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replacen(from, to, 1)).unwrap();
        }
        directory
    }

    /// The code of such a directory, or the message without the directory's name.
    fn compiled(changes: &[(&str, &str, &str)]) -> Result<Code, String> {
        let directory = changed(changes);
        let object = directory.path().join("own.so");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let made = Tree::of(directory.path()).and_then(|tree| tree.compile(&compiler, &object));
        let code = made.and_then(|()| load(&object, directory.path(), 1));
        code.map_err(|what| what.replace(&directory.path().display().to_string(), "DIR"))
    }

    fn refused(changes: &[(&str, &str, &str)]) -> String {
        compiled(changes).expect_err("it is refused")
    }

    const LAST_FEATURE: (&str, &str) = ("features.def", "\n/*      name                        default");

    #[test]
    fn a_changed_function_acts_and_the_others_are_as_they_were() {
        let code = compiled(&[("queue/entity.h", "88761", "88762")]).unwrap();
        let own = System::new(Box::leak(Box::new(code)));
        let weight = |sys: &System| (sys.task_weight(-20, false), sys.task_weight(0, false));
        assert_eq!(weight(&own), (88762, 1024));
        assert_eq!(weight(&System::default()), (88761, 1024));
        assert_eq!(own.code().reason(1), Code::built_in().reason(1));
        assert_eq!(own.code().default_tunables(), Code::built_in().default_tunables());
    }

    #[test]
    fn a_part_of_a_library_is_not_taken_for_one() {
        let directory = changed(&[("queue/entity.h", "88761", "88762")]);
        let object = directory.path().join("own.so");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        Tree::of(directory.path()).unwrap().compile(&compiler, &object).unwrap();
        assert!(is_whole(&object));
        let bytes = fs::read(&object).unwrap();
        for part in [0, 100, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&object, &bytes[..part]).unwrap();
            assert!(!is_whole(&object), "{part} of {} bytes", bytes.len());
        }
        assert!(!is_whole(&directory.path().join("none.so")));
    }

    #[test]
    fn entries_of_its_own_follow_the_built_in_ones() {
        let (file, end) = LAST_FEATURE;
        let feature = format!("FEATURE(OWN, \"6.12..\", \"\", \"an \\\"own\\\" one\")\n{end}");
        let code = compiled(&[
            (file, end, &feature),
            ("reasons.def", "REASON(VCPU_PACK,", "REASON(VCPU_PACK, \"x\")\nREASON(OWN,"),
            ("notes.def", "NOTE(CACHE_NODE,", "NOTE(OWN, 14, \"own\")\nNOTE(CACHE_NODE,"),
        ])
        .unwrap();
        let names = |code: &Code| code.features().iter().map(|f| f.name).collect::<Vec<_>>();
        let (own, built_in) = (names(&code), names(Code::built_in()));
        assert_eq!((own.last(), &own[..built_in.len()]), (Some(&"OWN"), &built_in[..]));
        assert_eq!(code.features().last().unwrap().help, "an \"own\" one");
        let on = |version| code.profile(Profile::by_name(version).unwrap()) >> FEATURES.len();
        assert_eq!((on("linux-6.12"), on("linux-6.8")), (1, 0));
        assert_eq!(code.reasons().last().unwrap().name, "OWN");
        assert!(code.notes().contains(&(1 << 14, "OWN", "own")));
    }

    #[test]
    fn structures_and_the_order_of_tables_are_fixed() {
        let stay = "structures and constants must stay as they are, and tables may only be appended to";
        assert_eq!(
            refused(&[("types.h", "u64 avg_idle;", "s64 avg_idle;")]),
            format!("DIR: struct cw_cpu.avg_idle differs from this coreward's: {stay}")
        );
        assert_eq!(
            refused(&[(
                "features.def",
                "FEATURE(WA_IDLE,",
                "FEATURE(OWN, \"\", \"\", \"\")\nFEATURE(WA_IDLE,"
            )]),
            format!("DIR: CW_FEAT_WA_IDLE differs from this coreward's: {stay}")
        );
        let removed = refused(&[("reasons.def", "REASON(SYNC_WAKER, \"waker about to sleep\")\n", "")]);
        assert!(removed.starts_with("DIR") && removed.contains("CW_REASON_SYNC_WAKER"), "{removed}");
        assert_eq!(
            refused(&[("native.h", "bool cw_lb_newidle(", "u32 cw_lb_newidle(")]),
            "DIR/native.h: it is not this coreward's, and a directory cannot change it (remove it)"
        );
    }

    #[test]
    fn what_the_compiler_says_names_file_and_line() {
        let message = refused(&[("queue/entity.h", "88761", "88761 oops")]);
        assert!(message.starts_with("DIR/queue/entity.h:") && message.contains("oops"), "{message}");
        assert_eq!(message.lines().count(), 1);
    }

    #[test]
    fn variables_are_refused_and_constants_are_not() {
        let with = |declared: &str| {
            [("mask.h", "static inline", &format!("{declared}\nstatic inline")[..])]
                .map(|(file, from, to)| (file, from, to.to_owned()))
        };
        let refuse = |declared: &str| {
            let changes = with(declared);
            compiled(&changes.each_ref().map(|(file, from, to)| (*file, *from, to.as_str()))).err()
        };
        let what = "is not constant: a policy keeps its state in struct cw_sys, so that runs are independent of each \
                    other";
        assert_eq!(refuse("u64 calls = 1;"), Some(format!("DIR: the variable `calls` {what}")));
        assert_eq!(refuse("u64 calls;"), Some(format!("DIR: the variable `calls` {what}")));
        assert_eq!(refuse("_Thread_local u64 calls;"), Some(format!("DIR: the variable `calls` {what}")));
        assert_eq!(refuse("const char *const names[] = { \"a\" };"), None);
    }

    #[test]
    fn tables_are_checked() {
        let (file, end) = LAST_FEATURE;
        let feature =
            |name: &str, kernels: &str| format!("FEATURE({name}, \"{kernels}\", \"\", \"\")\n{end}");
        assert_eq!(
            refused(&[(file, end, &feature("OWN", "new"))]),
            "features.def: the kernels of OWN are `new`, allowed are ranges like 6.5..6.12"
        );
        assert_eq!(
            refused(&[(file, end, &feature("NO_OWN", ""))]),
            "features.def: NO_OWN begins with NO_, which switches a feature off"
        );
        assert_eq!(
            refused(&[(file, "TUNABLE(nr_migrate,                      32,", "TUNABLE(nr_migrate, 0,")]),
            "features.def: the default of nr_migrate is 0, not 1 to 128"
        );
    }

    #[test]
    fn a_directory_has_to_be_one_of_a_policy() {
        let empty = tempfile::tempdir().unwrap();
        let message = |path: &Path| Tree::of(path).err().unwrap();
        assert!(
            message(empty.path())
                .ends_with(": it has no header or .def file of a policy (coreward policy new writes some)")
        );
        let wrong = changed(&[("util.h", "", "")]);
        fs::create_dir(wrong.path().join("wake")).unwrap();
        assert!(Tree::of(wrong.path()).is_ok());
        fs::write(wrong.path().join("wake/wakeup.h"), "").unwrap();
        assert!(message(wrong.path()).ends_with(
            "/wake: the policy has no such folder, allowed are balance, queue, tests, track, wakeup"
        ));
        let file = empty.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(message(&file).ends_with(": it is not a directory"));
        assert!(message(&empty.path().join("none")).ends_with(": it is not a directory"));
    }

    #[test]
    fn libraries_that_nobody_uses_are_removed() {
        let cache = tempfile::tempdir().unwrap();
        let file = |name: &str, age: Duration| {
            let path = cache.path().join(name);
            let file = fs::File::create(&path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            path
        };
        let day = Duration::from_secs(24 * 3600);
        let (old, used) = (file("policy-1.so", 31 * day), file("policy-2.so", 31 * day));
        let (new, other) = (file("policy-3.so", 29 * day), file("other.so", 365 * day));
        used_now(&used);
        remove_unused(cache.path(), SystemTime::now());
        assert_eq!([old, used, new, other].map(|path| path.exists()), [false, true, true, true]);
    }

    #[test]
    fn the_key_changes_with_what_is_compiled() {
        let key = |changes: &[_], compiler| Tree::of(changed(changes).path()).unwrap().key(compiler);
        let plain = key(&[("util.h", "", "")], "cc");
        assert_eq!(plain, key(&[("types.h", "", "")], "cc"));
        assert_ne!(plain, key(&[("util.h", "", " ")], "cc"));
        assert_ne!(plain, key(&[("util.h", "", "")], "clang"));
        assert_eq!(plain, key(&[("util.h", "", ""), ("tests/test.h", "", " ")], "cc"));
    }
}

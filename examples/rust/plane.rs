//! Starts a Wheelhouse for tests and stops it when dropped. Uses only the standard library.

use std::io::{BufRead, BufReader, Error, Result};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

static STARTED: AtomicUsize = AtomicUsize::new(0);

/// A control plane that keeps its objects in memory, on a free port of the loopback interface.
pub struct Plane {
    process: Child,
    directory: PathBuf,
}

impl Plane {
    /// Returns when the server is ready. `WHEELHOUSE` is the command that starts it.
    pub fn start() -> Result<Plane> {
        let command = std::env::var("WHEELHOUSE").unwrap_or("wheelhouse".into());
        let words: Vec<&str> = command.split_whitespace().collect();
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("plane-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let mut process = Command::new(words[0])
            .args(&words[1..])
            .args(["serve", "--dialect=kubernetes", "--storage-backend=memory"])
            .args(["--bind-address=127.0.0.1", "--secure-port=0"])
            .arg(format!("--data-dir={}", directory.display()))
            .stderr(Stdio::piped())
            .spawn()?;
        let mut log = BufReader::new(process.stderr.take().expect("a pipe")).lines();
        let plane = Plane { process, directory };
        let mut last = String::new();
        for line in log.by_ref() {
            last = line?;
            if last.contains(r#""msg":"ready""#) {
                // Keeps reading, so that a full pipe does not block the server.
                std::thread::spawn(move || log.for_each(drop));
                return Ok(plane);
            }
        }
        Err(Error::other(format!("the server did not start: {last}")))
    }

    /// The path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join("admin.kubeconfig")
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn a_plane_writes_a_kubeconfig() {
    let plane = Plane::start().unwrap();
    let text = std::fs::read_to_string(plane.kubeconfig()).unwrap();
    assert!(text.contains("https://127.0.0.1:"));
}

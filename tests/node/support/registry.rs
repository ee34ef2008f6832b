//! Debian's docker-registry.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Serves as `config` says, which is put into `directory` and names port 0: the process, and the port that the kernel chose.
pub(crate) fn serve(directory: &Path, config: &str) -> (Child, u16) {
    let path = directory.join("config.yml");
    std::fs::write(&path, config).unwrap();
    let mut command = Command::new("docker-registry");
    let mut process = command.arg("serve").arg(path).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(process.stderr.take().unwrap());
    let mut said = String::new();
    let port = loop {
        let mut line = String::new();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "the registry ended: {said}");
        said += &line;
        if let Some((_, rest)) = line.split_once("listening on 127.0.0.1:") {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            break digits.parse().unwrap();
        }
    };
    // It stops when nobody takes its log.
    std::thread::spawn(move || drop(std::io::copy(&mut log, &mut std::io::sink())));
    (process, port)
}

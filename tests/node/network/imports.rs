//! Manifests that `podstead import` makes run, and their pods reach each other by the names of the services.

use super::lan::Site;
use crate::support::eventually;
use std::fs;

/// The shape of a content management system with a database, a front and a volume that two services share.
const COMPOSE: &str = "
services:
  db:
    image: localhost/busybox:1
    command: [sh, -c, 'echo \"$$ANSWER\" > /var/lib/db/index.html; exec httpd -f -p 3306 -h /var/lib/db']
    environment: {ANSWER: 'from the ${KIND:-database}'}
    volumes: [db_data:/var/lib/db]
    restart: always
    mem_limit: 64m
  wordpress:
    image: localhost/busybox:1
    command: sh -c 'until wget -qO /www/index.html http://db:3306/; do sleep 1; done; exec httpd -f -p 80 -h /www'
    ports: ['127.0.0.1:8080:80']
    volumes: [www:/www, './site.conf:/etc/site.conf:ro']
    depends_on: [db]
    healthcheck: {test: [CMD, wget, -qO-, http://127.0.0.1/], interval: 5s, start_period: 5s}
    restart: unless-stopped
    labels: [traefik.enable=true]
volumes: {db_data: {}, www: {}}
";

#[test]
fn imported_compose_file_runs() {
    let site = Site::start();
    let project = site.host.path("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("compose.yaml"), COMPOSE).unwrap();
    fs::write(project.join("site.conf"), "setting = 1\n").unwrap();
    let out = site.host.path("imported").display().to_string();
    let import = site.host.cli(&["import", "compose", &project.join("compose.yaml").display().to_string(), "-o", &out]);
    let report = String::from_utf8_lossy(&import.stderr).into_owned();
    assert!(import.status.success() && report.contains("wordpress: labels are not carried over"), "{report}");
    site.host.cli_ok(&["validate", &out]);
    for name in ["db.yaml", "wordpress.yaml"] {
        fs::rename(site.host.path("imported").join(name), site.host.path("manifests").join(name)).unwrap();
    }
    let get = ["wget", "-qO-", "http://127.0.0.1/"];
    eventually("the page from the other service", || {
        let answer = site.host.cli(&[&["exec", "deploy/wordpress"], &get[..]].concat());
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        if text == "from the database\n" { Ok(()) } else { Err(format!("{text}{}", String::from_utf8_lossy(&answer.stderr))) }
    });
    assert_eq!(site.host.cli_ok(&["exec", "deploy/wordpress", "cat", "/etc/site.conf"]), "setting = 1\n");
    assert!(site.host.cli_ok(&["get", "pvc"]).contains("db-data"));
    fs::write(project.join("db.yaml"), "mine").unwrap();
    let again = ["import", "compose", &project.join("compose.yaml").display().to_string(), "-o", &project.display().to_string()];
    assert!(!site.host.cli(&again).status.success());
    assert_eq!(fs::read_to_string(project.join("db.yaml")).unwrap(), "mine");
}

#[test]
fn imported_units_and_commands_run() {
    let site = Site::start();
    let units = site.host.path("units");
    fs::create_dir(&units).unwrap();
    let unit = "[Container]\nImage=localhost/busybox:1\nExec=sh -c 'echo unit; exec sleep 1000000'\nVolume=unit.volume:/data\n\n[Service]\nRestart=always\n";
    fs::write(units.join("unit.container"), unit).unwrap();
    fs::write(units.join("unit.volume"), "[Volume]\n").unwrap();
    let of_units = site.host.cli_ok(&["import", "quadlet", &units.display().to_string()]);
    site.host.write_manifest("unit.yaml", &of_units);
    let command = "docker run --rm --name once -e A=b localhost/busybox:1 sh -c 'echo value $A'";
    site.host.write_manifest("once.yaml", &site.host.cli_ok(&["import", "run", command]));
    eventually("the unit to write its log", || {
        let log = site.host.cli(&["logs", "deploy/unit"]);
        if log.stdout == b"unit\n" { Ok(()) } else { Err(format!("{log:?}")) }
    });
    site.host.wait_log("once", "once", "value b");
    site.host.wait_for_pod("once", "it to have ended", |pod| pod.phase() == "Succeeded");
}

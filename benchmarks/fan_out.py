"""What many hosts cost, and how well they measure together.

    python benchmarks/fan_out.py skew [--hosts 20] [--forks 5]     start skew and overlap over real SSH
    python benchmarks/fan_out.py scale [--hosts 10 50 200]         the controller's CPU seconds and memory
    python benchmarks/fan_out.py layout                            the same total through fio's client and server

Everything runs on this machine; needs root (test hosts, loop devices). Prints the budgets of the design beside.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.integration.playbook import arguments, environment
from tests.lab import Lab

# so little load that the machine's CPUs are not what is measured
GENTLE = {"name": "gentle", "rw": "randread", "block_size": "4k", "io_depth": 4, "rate_iops": 50}
SMALL = {
    "hostmax_thin_count": 1,
    "hostmax_thin_size": "1GB",
    "hostmax_thin_cap": None,
    "hostmax_ramp_s": 0,
    "hostmax_expect": "none",
    "hostmax_fail_on": ["never"],
}


def play(settings: dict, *options: str, env: dict[str, str] | None = None) -> dict:
    """Run host_max to its end; its results."""
    done = subprocess.run(
        arguments("host_max", {**SMALL, **settings}, *options),
        cwd="/",
        env=environment(**(env or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return json.loads((pathlib.Path(settings["hostmax_results"]) / "latest/results.json").read_text())


def skew(hosts: int, forks: int) -> None:
    """Hosts over SSH; one of them gets ready some seconds after the others."""
    with Lab() as lab, tempfile.TemporaryDirectory(prefix="hostmax-fan-out-") as results:
        for number in range(hosts):
            lab.host(f"h{number + 1:02}", reach_s=0.5 if number == hosts - 1 else 0.0)
        settings = {"hostmax_results": results, "hostmax_workloads": [GENTLE], "hostmax_runtime_s": 20}
        (point,) = play(settings, *lab.inventory(), "--forks", str(forks), env={"ANSIBLE_PIPELINING": "1"})["points"]
    window = point["window"]
    starts = sorted(timing["skew_s"] for timing in point["timing"].values())
    print(f"{hosts} hosts, forks {forks}, {point.get('runtime_s', 20)} s")
    median_ms = 1e3 * statistics.median(starts)
    print(f"  start skew   {1e3 * window['skew_s']:7.1f} ms, median {median_ms:.1f} ms (budget 50 ms)")
    print(f"  overlap      {window['overlap']:7.2%} (budget 99 %)")
    print(f"  clocks       known to {1e3 * window['uncertainty_s']:.1f} ms, which the overlap is less by at both ends")
    print(f"  total        {point['total']['iops']:7.1f} IOPS of {50 * hosts} offered")


def scale(numbers: list[int]) -> None:
    """The controller's own CPU seconds for one and for five points on so many local hosts, and its peak memory."""
    for hosts in numbers:
        one, five = (_controller(hosts, points) for points in (1, 5))
        slope = (five[0] - one[0]) / (4 * hosts)
        print(
            f"{hosts:4} hosts: 1 point {one[0]:6.1f} CPU-s, 5 points {five[0]:6.1f} CPU-s, {five[1]:.0f} MiB;", end=" "
        )
        print(f"{slope:.3f} CPU-s a further host and point (budget 0.05)", flush=True)


def _controller(hosts: int, points: int) -> tuple[float, float]:
    """(CPU seconds without those of the modules, MiB of the largest process) of a run."""
    with tempfile.TemporaryDirectory(prefix="hostmax-fan-out-") as name:
        directory = pathlib.Path(name)
        found = {}
        for number in range(hosts):
            python = directory / f"python{number}"
            # modules run on the controller here; what they use is written down, to be taken off
            python.write_text(
                f"#!/bin/bash\nexport HOSTMAX_STATE={directory}/state{number}\n"
                f'{sys.executable} "$@"\ncode=$?\ntimes >> {directory}/times\nexit $code\n'
            )
            python.chmod(0o755)
            found[f"h{number:03}"] = {"ansible_connection": "local", "ansible_python_interpreter": str(python)}
        inventory = directory / "hosts.json"
        inventory.write_text(json.dumps({"all": {"hosts": found}}))
        workloads = [{**GENTLE, "name": f"gentle{number}", "rate_iops": 4} for number in range(points)]
        settings = {"hostmax_results": str(directory), "hostmax_workloads": workloads, "hostmax_runtime_s": 2}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        play(settings, "-i", str(inventory), "--forks", "10")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        spent = re.findall(r"(\d+)m([\d.]+)s", (directory / "times").read_text())
        return used_s - sum(60 * int(minutes) + float(seconds) for minutes, seconds in spent), after.ru_maxrss / 1024


def layout() -> None:
    """Two hosts of 1,000 IOPS each, one of which must lay out its file first: what fio's own client says of both."""
    with tempfile.TemporaryDirectory(prefix="hostmax-fan-out-") as name:
        directory = pathlib.Path(name)
        clients = []
        with contextlib.ExitStack() as servers:
            for host, size in (("a", "8m"), ("b", "2g")):
                clients += [
                    f"--client={servers.enter_context(_server(directory, host))}",
                    str(_job(directory, host, size)),
                ]
            output = directory / "output.json"
            subprocess.run(
                ["fio", f"--output={output}", "--output-format=json", "--eta=never", *clients], check=True, timeout=120
            )
        document = json.loads(output.read_text()[output.read_text().index("{") :])
        # fio itself sends what a prerun command says there
        begun = {host: float((directory / host / f"{host}.prerun.txt").read_text()) for host in "ab"}
        said = next(each for each in document["client_stats"] if each["jobname"] == "All clients")["read"]["iops"]
        together_s = max(0.0, 4 - abs(begun["a"] - begun["b"]))
        print("fio --client over two hosts, one lays out 2 GiB first, 4 s at 1,000 IOPS each")
        print(f"  it says      {said:7.0f} IOPS of both together")
        apart_s = abs(begun["a"] - begun["b"])
        print(f"  in truth     they began {apart_s:.1f} s apart and were together for {together_s:.1f} s")
        print("  this collection lays out before T0, and refuses a total of hosts that were not together (see skew)")


@contextlib.contextmanager
def _server(directory: pathlib.Path, host: str) -> Iterator[str]:
    """A fio server that nobody else can reach: a socket in a private directory."""
    home = directory / host
    home.mkdir(mode=0o700)
    server = subprocess.Popen(["fio", f"--server=sock:{home}/s"], cwd=home, stdout=subprocess.DEVNULL)
    try:
        while not (home / "s").exists():
            time.sleep(0.05)
        yield f"sock:{home}/s"
    finally:
        server.terminate()
        server.wait()


def _job(directory: pathlib.Path, host: str, size: str) -> pathlib.Path:
    path = directory / f"{host}.fio"
    path.write_text(
        f"[{host}]\nfilename={directory}/{host}/data\nsize={size}\nrw=randread\nbs=4k\nrate_iops=1000\ntime_based=1\n"
        f"runtime=4\nfallocate=none\nexec_prerun=date +%s.%N\n"
    )
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("what", choices=["skew", "scale", "layout"])
    parser.add_argument("--hosts", type=int, nargs="+")
    parser.add_argument("--forks", type=int, default=5)
    asked = parser.parse_args()
    if asked.what == "skew":
        skew((asked.hosts or [20])[0], asked.forks)
    elif asked.what == "scale":
        scale(asked.hosts or [10, 50, 200])
    else:
        layout()


if __name__ == "__main__":
    main()

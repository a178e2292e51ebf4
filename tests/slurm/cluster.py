"""A real Slurm on a single host for tests, with its own keys, ports and folders.

Nothing outside its folder is read or written, so that a munge or Slurm already running on the host
is not affected. Requires the Debian packages slurm-wlm and munge, and root: slurmd starts every job
as the user who submitted it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol")
PARTITION = "test"

CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
MpiDefault=none
ReturnToService=2
# containers have no cgroups; there is no accounting database
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
AccountingStorageType=accounting_storage/none
# without cgroups the kernel enforces no memory limit: Slurm samples every second and kills the job
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_min_interval=500000,bf_interval=5
# use the CPUs and memory configured here instead of those of the host
SlurmdParameters=config_overrides
MinJobAge=300
KillWait=3
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName={partition} Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class SlurmError(Exception):
    """Slurm could not be started or did not respond as expected."""


def missing_programs() -> list[str]:
    """Missing programs of the packages slurm-wlm and munge."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


def wait_for(what: str, true: Callable[[], bool], seconds: float, every: float = 0.2) -> None:
    """Wait until ``true()`` is true; raise SlurmError naming ``what`` after ``seconds``."""
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            raise SlurmError(f"{what}: not within {seconds:g} seconds")
        time.sleep(every)


class OneHostSlurm:
    """munged, slurmctld and slurmd as children of this process."""

    def __init__(self, folder: Path, *, cpus: int, memory_mb: int) -> None:
        self.folder = folder.resolve()
        self.config = self.folder / "slurm.conf"
        self.host = socket.gethostname().split(".")[0]
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(self.config),
            "PATH": f"{self.folder}/bin:{os.environ.get('PATH', '')}:/usr/sbin:/sbin",
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "spool", "munge", "bin"):
            (self.folder / name).mkdir(parents=True)
        # Snakemake's job step removes SLURM_CONF from the environment of srun
        srun = self.folder / "bin/srun"
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={self.config} exec {_srun()} "$@"\n')
        srun.chmod(0o755)
        self.folder.chmod(0o755)
        shutil.chown(self.folder / "munge", "munge", "munge")
        ports = _free_ports(2)
        self.config.write_text(
            CONFIG.format(
                host=self.host,
                controller_port=ports[0],
                node_port=ports[1],
                folder=self.folder,
                cpus=cpus,
                memory=memory_mb,
                partition=PARTITION,
            )
        )

    def start(self) -> None:
        """Start all three daemons and wait until the node accepts jobs."""
        key = self.folder / "munge/key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        shutil.chown(key, "munge", "munge")
        options = [
            f"--{option}={self.folder}/munge/{name}"
            for option, name in {
                "key-file": "key",
                "socket": "socket",
                "pid-file": "pid",
                "seed-file": "seed",
                "log-file": "log",
            }.items()
        ]
        self._start("munged", "--foreground", *options, user="munge")
        wait_for("the socket of munge", (self.folder / "munge/socket").exists, 20)
        self.start_controller()
        self.start_node()

    def start_controller(self) -> None:
        """Start slurmctld, which restores the jobs from before it was stopped."""
        self._start("slurmctld", "-D")
        wait_for("a response of slurmctld", lambda: self._ok("scontrol", "ping"), 60)

    def stop_controller(self) -> None:
        """Stop slurmctld; running jobs continue."""
        self._stop("slurmctld")

    def start_node(self, before: Sequence[str] = ()) -> None:
        """Start slurmd, optionally through the command ``before``."""
        self._start("slurmd", "-D", "-N", self.host, before=before)
        wait_for("an idle node", lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"), 60)

    def stop_node(self) -> None:
        """Stop slurmd."""
        self._stop("slurmd")

    def ask(self, *command: str) -> str:
        """Output of a Slurm command; empty if it fails."""
        try:
            answer = self._run(command)
        except subprocess.TimeoutExpired:
            return ""
        return answer.stdout if answer.returncode == 0 else ""

    def stop(self) -> None:
        """Cancel all jobs, then stop the daemons started here, and nothing else."""
        if self.running.get("slurmctld") and self._ok("scontrol", "ping"):
            self._ok("scancel", "--user=root")
            with contextlib.suppress(SlurmError):
                wait_for("the end of all jobs", lambda: not self.ask("squeue", "-h").strip(), 30)
        for name in reversed(list(self.running)):
            self._stop(name)

    def _ok(self, *command: str) -> bool:
        try:
            return self._run(command).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )

    def _start(
        self, name: str, *options: str, user: str | None = None, before: Sequence[str] = ()
    ) -> None:
        with (self.folder / f"{name}.out").open("ab") as out:
            self.running[name] = subprocess.Popen(
                [*before, name, *options],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=user,
                group=user,
            )
        time.sleep(0.3)
        if self.running[name].poll() is not None:
            output = (self.folder / f"{name}.out").read_text(errors="replace")
            raise SlurmError(f"{name} exited immediately: {output.strip()[-2000:]}")

    def _stop(self, name: str) -> None:
        process = self.running.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


@contextlib.contextmanager
def one_host_slurm(folder: Path, *, cpus: int, memory_mb: int) -> Iterator[OneHostSlurm]:
    """A running Slurm, stopped at the end of the block and on SIGTERM."""
    slurm = OneHostSlurm(folder, cpus=cpus, memory_mb=memory_mb)
    before = signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(SystemExit(143)))
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()
        signal.signal(signal.SIGTERM, before)


def _srun() -> str:
    found = shutil.which("srun")
    if found is None:
        raise SlurmError("srun is not installed")
    return found


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]

/**
 * Isolation of guests. Deno alone: all permissions denied, the kernel's limits on one process, and the user `nobody` where the gateway may
 * switch to it. In bubblewrap also own namespaces: no network, no other processes, and no files but Deno and its libraries, all read-only.
 */
import { accessSync, constants, existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import {
  CODE_RUN_CPU_SECONDS,
  CODE_RUN_DATA_BYTES_MAX,
  CODE_RUN_FILES_MAX,
  CODE_RUN_HEAP_MEGABYTES,
  CODE_RUN_NICENESS,
  CODE_RUN_THREADS_MAX,
} from "../limits.js";

export type IsolationName = "deno in bubblewrap" | "deno alone";

export interface Isolation {
  readonly name: IsolationName;
  readonly file: string;
  readonly args: readonly string[];
  /** User to switch to; absent: the gateway's own. */
  readonly identity?: { readonly uid: number; readonly gid: number };
  /** Whether the guest's process id comes on file descriptor 3; otherwise it is that of the started process. */
  readonly reportsPid: boolean;
}

/** Folders of system programs. The search path could name a program of another user. */
const PROGRAM_FOLDERS = ["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"];
/** Folders of the libraries of Deno and prlimit. */
const LIBRARY_FOLDERS = ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/nix/store"];
const NOBODY = 65_534;
/** A folder that cannot exist, where Deno would write caches and storage. */
const NO_FOLDER = "/dev/null/deno";
const DENO_ENVIRONMENT = { DENO_DIR: NO_FOLDER, DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" } as const;
const DENO_FLAGS = [
  "run",
  "--quiet",
  "--no-prompt",
  "--no-remote",
  "--no-npm",
  "--no-config",
  "--no-lock",
  "--no-code-cache",
  `--v8-flags=--max-old-space-size=${CODE_RUN_HEAP_MEGABYTES}`,
];

/** Environment of a guest's process, with nothing from the gateway's. */
export const GUEST_ENVIRONMENT: Readonly<Record<string, string>> = DENO_ENVIRONMENT;

/** The binary of the package `deno`; null where there is none for this machine. */
export function findDeno(): string | null {
  if (process.platform !== "linux") return null;
  try {
    const deno = createRequire(import.meta.url).resolve("deno/package.json");
    const binaries = createRequire(deno).resolve(`@deno/linux-${process.arch}-glibc/package.json`);
    const binary = join(dirname(binaries), "deno");
    accessSync(binary, constants.X_OK);
    return binary;
  } catch {
    return null;
  }
}

/** Isolations that this machine may support, strongest first; a trial shows which ones work. */
export function listIsolations(deno: string, guestProgram: string): readonly Isolation[] {
  const nice = findProgram("nice");
  const prlimit = findProgram("prlimit");
  const setpriv = findProgram("setpriv");
  const bwrap = findProgram("bwrap");
  if (!nice || !prlimit || !setpriv) return [];
  const limits = [
    `-n${CODE_RUN_NICENESS}`,
    prlimit,
    "--core=0",
    // The watch acts first. At the first number the process gets a signal, at the second it is killed.
    `--cpu=${CODE_RUN_CPU_SECONDS + 1}:${CODE_RUN_CPU_SECONDS + 2}`,
    `--data=${CODE_RUN_DATA_BYTES_MAX}`,
    `--nofile=${CODE_RUN_FILES_MAX}`,
  ];
  const boxed = bwrap && {
    name: "deno in bubblewrap" as const,
    args: [...limits, bwrap, ...toBox(deno, guestProgram, prlimit)],
    reportsPid: true,
  };
  const alone = {
    name: "deno alone" as const,
    args: [...limits, setpriv, "--no-new-privs", "--pdeathsig=KILL", deno, ...DENO_FLAGS, guestProgram],
    reportsPid: false,
  };
  // A gateway that runs as root may be unable to switch to `nobody`: its files may be readable by root only.
  const identities = process.getuid?.() === 0 ? [{ identity: { uid: NOBODY, gid: NOBODY } }, {}] : [{}];
  const isolations = boxed ? [boxed, alone] : [alone];
  return isolations.flatMap((isolation) => identities.map((identity) => ({ file: nice, ...isolation, ...identity })));
}

/** Arguments of bubblewrap, with the guest's program at their end. */
function toBox(deno: string, guestProgram: string, prlimit: string): string[] {
  return [
    "--unshare-all",
    "--unshare-user",
    "--disable-userns",
    "--die-with-parent",
    "--as-pid-1",
    "--clearenv",
    ...Object.entries(DENO_ENVIRONMENT).flatMap(([name, value]) => ["--setenv", name, value]),
    ...["--cap-drop", "ALL"],
    ...["--uid", `${NOBODY}`],
    ...["--gid", `${NOBODY}`],
    ...["--hostname", "guest"],
    ...LIBRARY_FOLDERS.filter((folder) => existsSync(folder)).flatMap((folder) => ["--ro-bind", folder, folder]),
    ...["--ro-bind", deno, "/deno"],
    ...["--ro-bind", prlimit, "/prlimit"],
    ...["--ro-bind", guestProgram, "/guest.js"],
    // The only part of /proc that Deno needs to start: the path of its program.
    ...["--symlink", "/deno", "/proc/self/exe"],
    ...["--remount-ro", "/"],
    ...["--chdir", "/"],
    ...["--info-fd", "3"],
    // Counted in the guest's own user namespace, so inside the box.
    ...["/prlimit", `--nproc=${CODE_RUN_THREADS_MAX}`],
    ...["/deno", ...DENO_FLAGS, "/guest.js"],
  ];
}

function findProgram(name: string): string | null {
  return PROGRAM_FOLDERS.map((folder) => join(folder, name)).find((file) => existsSync(file)) ?? null;
}

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createGate, type Gate } from '../../electron/core/gate/gate.ts';
import type { GateWorld } from '../../electron/core/gate/gate-world.ts';
import type { GateReport } from '../../electron/core/gate/reports.ts';
import type { ReportedEvent } from '../../electron/core/runtime-api.ts';

export const LANDLORD = fileURLToPath(new URL('../../build/landlord', import.meta.url));
export const RACER = fileURLToPath(new URL('./gate-racer.ts', import.meta.url));
export const NODE = [process.execPath, '--disable-warning=ExperimentalWarning'] as const;
export const URL_8080 = 'http://127.0.0.1:8080/v1';
export const LANE_8080 = '127.0.0.1_8080';

/** Nothing of this process's but the way to programs; and Node need not compile us again and again. */
const BASE_ENV: Readonly<Record<string, string>> = {
  PATH: process.env.PATH ?? '',
  // A landlord that this user really runs is not to hear of tests.
  VRAM_LANDLORD_REPORTS: 'off',
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/compile', import.meta.url)),
};

/** A folder of its own, gone at the end; `using`. */
export interface TempFolder extends Disposable {
  readonly path: string;
}

export function tempFolder(name = 'gate'): TempFolder {
  const path = mkdtempSync(join(tmpdir(), `landlord-${name}-`));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** A gate of its own whose lanes lie in `root`, and what it reported. */
export function gateIn(
  root: string,
  world: Partial<GateWorld> = {},
  env: Readonly<Record<string, string>> = {},
): {
  readonly gate: Gate;
  readonly reports: GateReport[];
  readonly onReport: (report: GateReport) => void;
  /** What a running landlord would hear of it. */
  readonly told: ReportedEvent[];
} {
  const reports: GateReport[] = [];
  const told: ReportedEvent[] = [];
  const teller = { tell: (event: ReportedEvent) => void told.push(event), settled: async () => undefined };
  const gate = createGate({ env: () => ({ VRAM_LANDLORD_GATE_DIR: root, ...env }), teller, ...world });
  return { gate, reports, onReport: (report) => reports.push(report), told };
}

/** Another process that says a line once it is where it should be, and ends when killed or told to. */
export interface Other extends AsyncDisposable {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Its lines of output so far and to come. */
  line(): Promise<string>;
  /** Closes its input, and waits for its end. */
  end(): Promise<void>;
  kill(signal?: NodeJS.Signals): Promise<void>;
}

export function startOther(
  command: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Other {
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...BASE_ENV, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  const { stdin, stdout } = child;
  const exited = once(child, 'exit');
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  stdin.on('error', () => undefined);
  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exited;
  };
  return {
    pid: child.pid ?? -1,
    child,
    async line() {
      const next = await lines.next();
      if (next.done === true) throw new Error(`${command.join(' ')} ended without a line`);
      return next.value;
    },
    async end() {
      stdin.end();
      await exited;
    },
    kill,
    [Symbol.asyncDispose]: () => kill(),
  };
}

const PYTHON_HOLDER = `
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
sys.stdin.read()
`;

/** A program that knows nothing of us and holds a lock file; resolves when it does. */
export async function pythonHolder(path: string): Promise<Other> {
  const other = startOther(['python3', '-c', PYTHON_HOLDER, path]);
  await other.line();
  return other;
}

/** A process that holds the lane through our library until its input ends. */
export async function nodeHolder(root: string, session: string, url = URL_8080): Promise<Other> {
  const other = startOther([...NODE, RACER, 'hold', url, session], {
    env: { VRAM_LANDLORD_GATE_DIR: root },
  });
  const line = await other.line();
  if (line !== 'held') throw new Error(`it got ${line}`);
  return other;
}

/** Resolves when `condition` holds; throws after 30 s, which is no speed but an end to hanging. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`it never came to be: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Runs a command to its end. */
export function runToEnd(
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd?: string,
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const [program = '', ...args] = command;
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    env: { ...BASE_ENV, ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  return { status, stdout, stderr };
}

/** A prefix for a command that runs it with another passwd file; null where this machine permits no such thing. */
export function withPasswd(folder: string, home: string): readonly string[] | null {
  const uid = process.geteuid?.() ?? 0;
  const file = join(folder, 'passwd');
  const lines = [`root:x:0:0:root:${home}:/bin/sh`];
  if (uid !== 0) lines.push(`user:x:${uid}:${uid}::${home}:/bin/sh`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  mkdirSync(home, { recursive: true });
  // A machine-wide root of this machine would come before the home.
  const hidden = '{ [ ! -d /var/lib/vram-landlord ] || mount -t tmpfs tmpfs /var/lib/vram-landlord; }';
  return privately(`mount --bind '${file}' /etc/passwd && ${hidden}`);
}

/** A prefix that runs a command in a mount namespace of its own after `setUp`; null where that is not permitted. */
export function privately(setUp: string): readonly string[] | null {
  const namespace = process.geteuid?.() === 0 ? ['-m'] : ['-r', '-m'];
  const prefix = ['unshare', ...namespace, 'sh', '-c', `${setUp} && exec "$@"`, 'sh'];
  return runToEnd([...prefix, 'true']).status === 0 ? prefix : null;
}

/** Appended lines `+ who` and `- who`: the kernel puts them in one order, so no clock is needed. */
export function mostAtOnce(logFile: string): {
  readonly most: number;
  readonly turns: number;
  readonly left: number;
} {
  let inside = 0;
  let most = 0;
  let turns = 0;
  for (const line of readFileSync(logFile, 'utf8').split('\n')) {
    if (line.startsWith('+')) {
      inside += 1;
      turns += 1;
      most = Math.max(most, inside);
    } else if (line.startsWith('-')) inside -= 1;
  }
  return { most, turns, left: inside };
}

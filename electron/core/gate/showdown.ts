import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../../../shared/errors.ts';
import { GATE_DIR_VARIABLE } from './gate-root.ts';

/**
 * The check no single process can make: sessions of different profiles, and a scheduled turn with
 * nearly no environment, meet at one lane. Where each resolves another root, each gets its own lock
 * and everything looks right; so the lock's place and inode are compared, not only who got it.
 *
 *   writer  takes the lane          reader   is deflected     cron   is deflected
 *   writer  is done  ──►  a program of another kind finds it free, and cron takes it at once
 */
export interface ShowdownOptions {
  /** The lane; default one of no backend, so that nobody's turn is held up. */
  readonly port?: number;
  /** null: where this user's turns really go. A folder: there instead. Default null. */
  readonly gateDir?: string | null;
  /** How an actor is started, before its own arguments; default this program's Node. */
  readonly command?: readonly string[];
}

export interface ShowdownStep {
  readonly who: string;
  /** `HOME=… cwd=… url=…` */
  readonly how: string;
  readonly expected: string;
  readonly saw: string;
  readonly passed: boolean;
}

export interface ShowdownResult {
  readonly passed: boolean;
  /** The lock's true place, as the first actor found it; null when it found none. */
  readonly path: string | null;
  readonly inode: number | null;
  readonly rootFrom: string | null;
  /** What the first actor says of a lane that it did not get; null: nothing. */
  readonly why: string | null;
  readonly steps: readonly ShowdownStep[];
}

/** IANA's tcpmux: no inference server listens there. */
export const IDLE_PORT = 1;
const ANSWER_MS = 20_000;
const ACTOR = fileURLToPath(new URL('./showdown-actor.ts', import.meta.url));

interface Answer {
  readonly kind: string;
  readonly message: string | null;
  readonly root: { readonly path: string; readonly from: string } | null;
  readonly path: string | null;
  readonly inode: number | null;
}

interface Role {
  readonly name: string;
  readonly class: 'interactive' | 'batch';
  readonly url: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Takes some seconds. Never throws: what goes wrong is a step that did not pass. */
export async function runShowdown(options: ShowdownOptions = {}): Promise<ShowdownResult> {
  const folder = mkdtempSync(join(tmpdir(), 'landlord-showdown-'));
  const actors: Actor[] = [];
  const enter = async (role: Role): Promise<Actor> => {
    const actor = await startActor(role, options.command ?? defaultCommand());
    actors.push(actor);
    return actor;
  };
  try {
    const { writer, reader, cron } = roles(folder, options.port ?? IDLE_PORT, options.gateDir ?? null);
    const a = await enter(writer);
    const [b, c] = [await enter(reader), await enter(cron)];
    const path = a.answer?.path ?? null;
    const steps = [step(a, 'held', a), step(b, 'busy', a), step(c, 'busy', a)];
    if (path !== null) steps.push(foreignStep(path, 1));
    await a.end();
    // The lane is free the moment its holder let go: nothing has to notice, clean up or time out.
    const again = await enter({ ...cron, name: 'cron, next turn' });
    steps.push(step(again, 'held', a));
    await again.end();
    if (path !== null) steps.push(foreignStep(path, 0));
    return {
      passed: steps.every((entry) => entry.passed),
      path,
      inode: a.answer?.inode ?? null,
      rootFrom: a.answer?.root?.from ?? null,
      why: a.answer?.message ?? null,
      steps,
    };
  } finally {
    await Promise.all(actors.map((actor) => actor.end()));
    rmSync(folder, { recursive: true, force: true });
  }
}

function defaultCommand(): readonly string[] {
  return [process.execPath, '--disable-warning=ExperimentalWarning', ACTOR];
}

function roles(
  folder: string,
  port: number,
  gateDir: string | null,
): Record<'writer' | 'reader' | 'cron', Role> {
  for (const name of ['home-a', 'home-b', 'profile/work']) mkdirSync(join(folder, name), { recursive: true });
  const linked = join(folder, 'linked-home');
  symlinkSync(join(folder, 'home-b'), linked);
  const path = process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin';
  const base: Record<string, string> =
    gateDir === null ? { PATH: path } : { PATH: path, [GATE_DIR_VARIABLE]: gateDir };
  const inherited = process.env[GATE_DIR_VARIABLE];
  if (gateDir === null && inherited !== undefined) base[GATE_DIR_VARIABLE] = inherited;
  return {
    writer: {
      name: 'writer',
      class: 'interactive',
      url: `http://localhost:${port}/v1`,
      cwd: join(folder, 'home-a'),
      env: { ...base, HOME: join(folder, 'home-a'), XDG_STATE_HOME: join(folder, 'home-a', 'state') },
    },
    reader: {
      name: 'reader',
      class: 'interactive',
      url: `http://[::1]:${port}`,
      cwd: join(folder, 'profile', 'work'),
      env: {
        ...base,
        HOME: linked,
        XDG_STATE_HOME: join(folder, 'profile', 'work'),
        XDG_CONFIG_HOME: join(folder, 'profile', 'work'),
        USER: 'somebody-else',
      },
    },
    cron: { name: 'cron', class: 'batch', url: `HTTP://127.0.0.1:${port}/v1/`, cwd: '/', env: base },
  };
}

interface Actor {
  readonly role: Role;
  /** null: it said nothing that could be read. */
  readonly answer: Answer | null;
  readonly trouble: string | null;
  /** Any number of times; resolves when the process is gone. */
  end(): Promise<void>;
}

async function startActor(role: Role, command: readonly string[]): Promise<Actor> {
  const [program = process.execPath, ...args] = command;
  const child = spawn(program, [...args, role.url, role.name, role.class], {
    cwd: role.cwd,
    env: { ...role.env },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const end = async (): Promise<void> => {
    child.stdin.end();
    const timer = setTimeout(() => child.kill('SIGKILL'), ANSWER_MS);
    await gone;
    clearTimeout(timer);
  };
  child.stdin.on('error', () => undefined);
  try {
    const line = await firstLine(child, gone);
    return { role, answer: parseAnswer(line), trouble: null, end };
  } catch (thrown) {
    return { role, answer: null, trouble: messageOf(thrown), end };
  }
}

async function firstLine(child: ChildProcess, gone: Promise<void>): Promise<string> {
  const { stdout } = child;
  if (stdout === null) throw new Error('it has no output');
  const lines = createInterface({ input: stdout });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await Promise.race([
      new Promise<string>((resolve) => lines.once('line', resolve)),
      gone.then(
        () =>
          new Promise<never>((_, reject) =>
            setTimeout(() => reject(new Error('it ended without a word')), 50),
          ),
      ),
      new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(new Error(`it said nothing within ${ANSWER_MS / 1000} s`)),
          ANSWER_MS,
        );
      }),
    ]);
  } finally {
    clearTimeout(timer);
    lines.close();
  }
}

function parseAnswer(line: string): Answer {
  const value: Answer = JSON.parse(line);
  return value;
}

/** Passed when it got what it should, at the very file the first actor locked. */
function step(actor: Actor, expected: 'held' | 'busy', first: Actor): ShowdownStep {
  const { role, answer } = actor;
  const home = role.env.HOME === undefined ? 'no HOME' : `HOME=${role.env.HOME}`;
  const how = `${home} cwd=${role.cwd} url=${role.url}`;
  const where = `${answer?.path ?? 'no lock'} inode ${answer?.inode ?? 'none'}`;
  const same =
    answer !== null &&
    answer.inode !== null &&
    answer.path === first.answer?.path &&
    answer.inode === first.answer?.inode;
  return {
    who: role.name,
    how,
    expected,
    saw: answer === null ? (actor.trouble ?? 'nothing') : `${answer.kind} at ${where}`,
    passed: answer?.kind === expected && same,
  };
}

/** util-linux' flock knows nothing of us: what it finds is the kernel's own word. */
function foreignStep(path: string, expectedStatus: 0 | 1): ShowdownStep {
  const { status, error } = spawnSync('flock', ['-n', '-E', '1', path, 'true'], { stdio: 'ignore' });
  const word = (code: number): string => (code === 1 ? 'busy' : 'free');
  const how = `flock -n ${path}`;
  const base = { who: 'flock', how, expected: word(expectedStatus) };
  if (error !== undefined) return { ...base, saw: 'no flock program here', passed: true };
  const known = status === 0 || status === 1;
  return { ...base, saw: known ? word(status) : `exit code ${status}`, passed: status === expectedStatus };
}

import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { LANE_8080, mostAtOnce, NODE, RACER, startOther, tempFolder, withPasswd } from '../support/gate.ts';

const TURNS = 20_000;
const PYTHON_RACER = fileURLToPath(new URL('../support/gate-racer.py', import.meta.url));
const SHELL_RACER = fileURLToPath(new URL('../support/gate-racer.sh', import.meta.url));

/** Node agents (8), Python (5), shells with util-linux' flock (3): those start a program a turn. */
const SHARES = { node: 8, python: 5, shell: 3 } as const;
const SHELL_SHARE = 0.04;

const URLS = [
  'http://localhost:8080/v1',
  'http://127.0.0.1:8080',
  'http://[::1]:8080/v1/',
  'HTTP://LOCALHOST:8080',
  'http://127.1:8080',
  'http://0.0.0.0:8080/v1',
  'http://[::ffff:127.0.0.1]:8080',
  'localhost:8080',
];

interface Race {
  readonly turns: number;
  readonly width: number;
  /** Extra environment for the Node agents: how they are broken. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Processes of one user with nothing in common but that: they must meet at one lane all the same. */
async function race(folder: string, options: Race): Promise<ReturnType<typeof mostAtOnce>> {
  const home = join(folder, 'passwd-home');
  const prefix = withPasswd(folder, home);
  // Where no passwd file can be put in place the variable must do; then homes and profiles differ all the same.
  const root = prefix === null ? join(folder, 'gates') : join(home, '.local/state/vram-landlord/gates');
  const fixed: Readonly<Record<string, string>> = prefix === null ? { VRAM_LANDLORD_GATE_DIR: root } : {};
  mkdirSync(root, { recursive: true });
  const lock = join(root, `${LANE_8080}.lock`);
  if (options.width > 1) writeFileSync(join(root, `${LANE_8080}.width`), `${options.width}\n`);
  const log = join(folder, 'log');
  writeFileSync(log, '');

  const shellTurns = Math.round((options.turns * SHELL_SHARE) / SHARES.shell);
  const rest = options.turns - shellTurns * SHARES.shell;
  const each = Math.floor(rest / (SHARES.node + SHARES.python));
  const first = rest - each * (SHARES.node + SHARES.python - 1);
  const racers = [
    ...Array.from({ length: SHARES.node }, (_, index) => {
      const session = `node-${index}`;
      const turns = String(index === 0 ? first : each);
      const command = [
        ...(prefix ?? []),
        ...NODE,
        RACER,
        'race',
        URLS[index % URLS.length] ?? '',
        session,
        turns,
        log,
      ];
      return startOther(command, profile(folder, index, { ...fixed, ...options.env }));
    }),
    ...Array.from({ length: SHARES.python }, (_, index) =>
      startOther([
        'python3',
        PYTHON_RACER,
        lock,
        String(options.width),
        `python-${index}`,
        String(each),
        log,
      ]),
    ),
    ...Array.from({ length: SHARES.shell }, (_, index) =>
      startOther(['sh', SHELL_RACER, lock, String(options.width), `shell-${index}`, String(shellTurns), log]),
    ),
  ];
  try {
    await Promise.all(racers.map((racer) => racer.end()));
    for (const { child } of racers) expect(child.exitCode).toBe(0);
  } finally {
    await Promise.all(racers.map((racer) => racer.kill()));
  }
  return mostAtOnce(log);
}

/** A home, folders and working directory of its own; every third home is a link. */
function profile(
  folder: string,
  index: number,
  env: Readonly<Record<string, string>>,
): { readonly cwd: string; readonly env: Readonly<Record<string, string>> } {
  const real = join(folder, `home-${index}`);
  mkdirSync(join(real, 'work'), { recursive: true });
  const home = index % 3 === 0 ? join(folder, `link-${index}`) : real;
  if (home !== real) symlinkSync(real, home);
  const base: Record<string, string> = { HOME: home, XDG_STATE_HOME: join(home, 'state'), ...env };
  if (index % 2 === 0) base.XDG_CONFIG_HOME = join(home, 'config');
  return { cwd: index % 4 === 0 ? '/' : join(home, 'work'), env: base };
}

describe('sixteen processes of different homes, profiles, folders, languages and spellings', () => {
  it(`take ${TURNS} turns, and no two overlap (rule 15)`, async () => {
    using folder = tempFolder('stampede');
    expect(await race(folder.path, { turns: TURNS, width: 1 })).toEqual({ most: 1, turns: TURNS, left: 0 });
  }, 900_000);

  it('are never more than three in a lane three wide, and sometimes three', async () => {
    using folder = tempFolder('stampede');
    expect(await race(folder.path, { turns: 4000, width: 3 })).toEqual({ most: 3, turns: 4000, left: 0 });
  });

  it('do overlap where the root is resolved from HOME: this test would see it', async () => {
    using folder = tempFolder('stampede');
    // A fixed root hides the break, so it is not set here; where the passwd file can't be replaced,
    // HOME moves the broken agents into their own folders all the same.
    const broken = { GATE_BREAK: 'home', VRAM_LANDLORD_GATE_DIR: '' };
    const { most } = await race(folder.path, { turns: 2000, width: 1, env: broken });
    expect(most).toBeGreaterThan(1);
  });
});

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BenchReport, type BenchSide, figures } from './report.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** As it is run from the sources: the launcher, then Node. */
const LANDLORD = [join(root, 'build/landlord')];

/**
 * How long our commands take from their start to their end, beside the bare program that does the same:
 * `node -e 0` is what any command in Node costs, `flock -n FILE true` is a lane without us.
 */
export async function benchStart(short = false): Promise<BenchReport> {
  const folder = mkdtempSync(join(tmpdir(), 'landlord-bench-'));
  const stateDir = join(folder, 'state');
  const lock = join(folder, 'lock');
  writeFileSync(lock, '');
  const env = { ...process.env, VRAM_LANDLORD_GATE_DIR: join(folder, 'gates'), HOME: folder };
  const notes: string[] = [];
  const rounds = short ? 2 : 25;
  const serving = await serve(join(folder, 'serving'), env);
  try {
    const hasFlock = spawnSync('flock', ['-n', lock, 'true']).status === 0;
    if (!hasFlock) notes.push('No flock program here (util-linux has it).');
    const turn = ['turn', '--backend', 'http://127.0.0.1:9', '--', 'true'];
    const commands: readonly (readonly [string, readonly string[]])[] = [
      ['node -e 0', [process.execPath, '-e', '0']],
      ['landlord turn -- true', [...LANDLORD, ...turn]],
      [
        'landlord turn -- true, a runtime is there',
        [...LANDLORD, ...turn, '--state-dir', join(folder, 'serving')],
      ],
      ['landlord status', [...LANDLORD, 'status', '--state-dir', join(folder, 'serving')]],
      ...(hasFlock ? ([['flock -n FILE true', ['flock', '-n', lock, 'true']]] as const) : []),
    ];
    const usable = commands.filter(([name, command]) => {
      const { status, stderr } = run(command, env);
      if (status !== 0)
        notes.push(`${name}: left out, it ended with ${status}: ${stderr.trim().slice(0, 200)}`);
      return status === 0;
    });
    const sides: BenchSide[] = usable.map(([name]) => ({ name, samplesUs: [] }));
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, [, command]] of usable.entries()) {
        const beganAtMs = performance.now();
        run(command, env);
        const side = sides[index];
        if (side !== undefined)
          sides[index] = { ...side, samplesUs: [...side.samplesUs, (performance.now() - beganAtMs) * 1000] };
      }
    }
    const first: number[] = [];
    for (let round = 0; round < (short ? 1 : 7); round += 1) {
      const beganAtMs = performance.now();
      const served = await serve(join(stateDir, String(round)), env);
      first.push((performance.now() - beganAtMs) * 1000);
      await served.end();
    }
    sides.push({ name: 'landlord serve, to the first good reading', samplesUs: first });
    const report = figures(sides);
    const bare = report[0]?.medianUs ?? Number.NaN;
    const ours = report.find((side) => side.name === 'landlord turn -- true')?.medianUs ?? Number.NaN;
    notes.push(
      `landlord turn -- true takes ${((ours - bare) / 1000).toFixed(1)} ms more than node -e 0 (aim: 25): ${ours - bare <= 25_000 ? 'met' : 'NOT met'}`,
    );
    return { part: 'start', sides: report, notes };
  } finally {
    await serving.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

function run([program, ...args]: readonly string[], env: NodeJS.ProcessEnv) {
  return spawnSync(program ?? '', args, { env, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] });
}

/** Resolves once its state has a device with known memory. */
async function serve(
  stateDir: string,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly end: () => Promise<void> }> {
  const [program = '', ...args] = LANDLORD;
  const child = spawn(program, [...args, 'serve', '--port', '0', '--state-dir', stateDir], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const end = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  let said = '';
  await new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (/\?key=\S+/.test(said)) resolve();
    });
  });
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0];
  const key = /\?key=\S+/.exec(said)?.[0];
  if (url === undefined || key === undefined) {
    await end();
    throw new Error(`landlord serve did not say its address: ${said}`);
  }
  const opened = await fetch(`${url}/${key}`, { redirect: 'manual' });
  const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
  for (;;) {
    const state: unknown = await (await fetch(`${url}/api/state`, { headers: { cookie } })).json();
    const devices: unknown =
      typeof state === 'object' && state !== null ? Reflect.get(state, 'devices') : null;
    if (Array.isArray(devices) && devices.some((one) => typeof one?.freeBytes === 'number')) return { end };
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

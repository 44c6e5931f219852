import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { z } from 'zod';
import { type BenchReport, type BenchSide, figures, quantile } from './report.ts';

/** The tests' own measuring, as a program: what runs real servers lies with them. */
const PROGRAM = join(import.meta.dirname, '../..', 'test/support/measure-run.ts');

const times = z.array(z.number());
const guardFigures = z.object({
  bytesNeededMs: times,
  oneBigMs: times,
  race: z.object({ toFreeMs: times, toToldMs: times, aloneMs: z.number() }),
  floorMs: times,
});

const cost = z.object({
  pid: z.number(),
  cpuMs: z.number(),
  residentBytes: z.number(),
  proportionalBytes: z.number(),
});
const idleFigures = z.array(
  z.object({ name: z.string(), elapsedMs: z.number(), before: z.array(cost), after: z.array(cost) }),
);

/** How fast the guards act, over a real llama.cpp router, a tap on its wire, and a simulated card. */
export async function benchGuard(short = false): Promise<BenchReport> {
  const { bytesNeededMs, oneBigMs, race, floorMs } = guardFigures.parse(await measure('guard', short));
  const side = (name: string, ms: readonly number[]): BenchSide => ({
    name,
    samplesUs: ms.map((one) => one * 1000),
  });
  const unload = quantile(bytesNeededMs, 0.5);
  const free = quantile(race.toFreeMs, 0.5);
  return {
    part: 'guard',
    sides: figures([
      side('race: the router alone, until the loser is gone', [race.aloneMs]),
      side('race: `loading` event → memory free', race.toFreeMs),
      side('race: `loading` event → told as killed, memory settled', race.toToldMs),
      side('`loading` event → unload request, bytes needed', bytesNeededMs),
      side('`loading` event → unload request, one big model', oneBigMs),
      side('floor broken → memory free', floorMs),
    ]),
    notes: [
      `Event to unload takes ${unload.toFixed(1)} ms (aim: under 5 ms, ${unload < 5 ? 'met' : 'NOT met'}).`,
      `Race to free takes ${(free / 1000).toFixed(2)} s where the router alone takes ${(race.aloneMs / 1000).toFixed(1)} (aim: under 1.3 s, ${free < 1300 ? 'met' : 'NOT met'}).`,
    ],
  };
}

const MB = 1_000_000;

/** CPU share and memory of an idle runtime with its children. A time here is CPU time for each second that passes. */
export async function benchIdle(short = false): Promise<BenchReport> {
  const costs = idleFigures.parse(await measure('idle', short));
  const rows = costs.map(({ name, elapsedMs, before, after }) => {
    const sum = (of: typeof after, key: 'cpuMs' | 'residentBytes' | 'proportionalBytes'): number =>
      of.reduce((total, one) => total + one[key], 0);
    return {
      name,
      cpuPercent: (100 * (sum(after, 'cpuMs') - sum(before, 'cpuMs'))) / elapsedMs,
      residentBytes: sum(after, 'residentBytes'),
      proportionalBytes: sum(after, 'proportionalBytes'),
      ownResidentBytes: after[0]?.residentBytes ?? Number.NaN,
      processes: after.length,
    };
  });
  const [closed] = rows;
  const share = closed?.cpuPercent ?? Number.NaN;
  const ownMb = (closed?.ownResidentBytes ?? Number.NaN) / MB;
  return {
    part: 'idle',
    sides: figures(
      rows.map(({ name, cpuPercent }) => ({
        name: `CPU time a second, ${name}`,
        samplesUs: [cpuPercent * 10_000],
      })),
    ),
    notes: [
      ...rows.map(
        (row) =>
          `${row.name}: ${row.cpuPercent.toFixed(2)} % of a core; ${row.processes} processes, RSS ${(row.residentBytes / MB).toFixed(0)} MB in all (the runtime's own ${(row.ownResidentBytes / MB).toFixed(0)}), PSS ${(row.proportionalBytes / MB).toFixed(0)} MB.`,
      ),
      `Idle, window closed: ${share.toFixed(2)} % of a core (aim: under 0.5, ${share < 0.5 ? 'met' : 'NOT met'}), the runtime's process ${ownMb.toFixed(0)} MB (aim: under 100, ${ownMb < 100 ? 'met' : 'NOT met'}).`,
      'The kernel counts CPU in steps of 10 ms.',
    ],
    details: rows,
  };
}

async function measure(what: 'guard' | 'idle', short: boolean): Promise<unknown> {
  const args = ['--disable-warning=ExperimentalWarning', PROGRAM, what, ...(short ? ['--short'] : [])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`Measuring ${what} ended with ${code}; the lines above say why.`);
  return JSON.parse(said.trim().split('\n').at(-1) ?? '');
}

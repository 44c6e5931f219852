import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BenchReport, figures } from './report.ts';
import { benchLoop, PERIOD_MS } from './watch-loop.ts';
import { benchProc } from './watch-proc.ts';
import { benchSources } from './watch-sources.ts';

const AIM_CPU_MS = 1;
const AIM_MODELS = 10;

/**
 * What watching costs: a sample of a card, by where it is read; a walk over /proc; a step of the control
 * loop. The sampler's process does the first two, the runtime's the last.
 */
export async function benchWatch(short = false): Promise<BenchReport> {
  const folder = mkdtempSync(join(tmpdir(), 'landlord-bench-'));
  try {
    const loop = await benchLoop(short);
    const proc = benchProc(folder, short ? 1_000 : 10_000, short ? 5 : 60);
    const sources = await benchSources(folder, short);
    const ten = loop.find(({ models }) => models === AIM_MODELS)?.cpuMsPerStep ?? Number.NaN;
    const most = loop.at(-1);
    return {
      part: 'watch',
      sides: figures([...sources.sides, ...proc, ...loop.map(({ side }) => side)]),
      notes: [
        ...sources.notes,
        `A step with ${AIM_MODELS} models takes ${ten.toFixed(3)} ms of CPU (aim: under ${AIM_CPU_MS} ms, ${ten < AIM_CPU_MS ? 'met' : 'NOT met'}).`,
        `At one step every ${PERIOD_MS} ms, ${most?.models} models cost ${(((most?.cpuMsPerStep ?? Number.NaN) / PERIOD_MS) * 100).toFixed(2)} % of a core.`,
      ],
      details: { cpuMsPerStep: loop.map(({ models, cpuMsPerStep }) => ({ models, cpuMsPerStep })) },
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

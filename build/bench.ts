/**
 * `npm run bench [-- --only NAME] [--json] [--short] [--minutes N]`: what our own mechanisms cost, beside
 * what one would use instead, measured alternately in one run so that a busy machine slows both alike. `--short` only shows
 * that each part still works: too few rounds to believe its figures.
 */
import { cpus, release, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { type BenchReport, reportText } from './bench/report.ts';

interface Part {
  readonly name: string;
  readonly about: string;
  readonly load: () => Promise<(short: boolean, minutes: number | null) => Promise<BenchReport>>;
}

const PARTS: readonly Part[] = [
  {
    name: 'lane',
    about: 'taking and releasing a lane, beside other file locks',
    load: async () => (await import('./bench/lane.ts')).benchLane,
  },
  {
    name: 'page',
    about:
      'the window left open, and with 200 models and 5 000 events: frames, layouts and its share of a core',
    load: async () => (await import('./bench/page.ts')).benchPage,
  },
  {
    name: 'watch',
    about: 'a sample by source, a walk over /proc, and a step of the control loop when nothing happens',
    load: async () => (await import('./bench/watch.ts')).benchWatch,
  },
  {
    name: 'guard',
    about: 'how soon the guards free memory, beside the router alone',
    load: async () => (await import('./bench/measured.ts')).benchGuard,
  },
  {
    name: 'idle',
    about: 'what the runtime costs when nothing happens',
    load: async () => (await import('./bench/measured.ts')).benchIdle,
  },
  {
    name: 'gateway',
    about: 'a request through the gateway, beside other ways to the same llama-server',
    load: async () => (await import('./bench/gateway.ts')).benchGateway,
  },
  {
    name: 'showdown',
    about: 'two sessions, a cron job and a batch indexer at one router through the gateway, for `--minutes`',
    load: async () => (await import('./bench/showdown.ts')).benchShowdown,
  },
  {
    name: 'soak',
    about:
      'turns, loads, evictions and config reloads over a real runtime for `--minutes`: what grows, what fails',
    load: async () => (await import('./bench/soak.ts')).benchSoak,
  },
  {
    name: 'switch',
    about: 'from one agent of the engine to another, beside reading again what was said',
    load: async () => (await import('./bench/switch.ts')).benchSwitch,
  },
  {
    name: 'ledger',
    about: 'booking a line, by how many there are',
    load: async () => (await import('./bench/ledger.ts')).benchLedger,
  },
  {
    name: 'start',
    about: 'our commands from their start to their end, beside the bare ones',
    load: async () => (await import('./bench/start.ts')).benchStart,
  },
  {
    name: 'store',
    about: 'events and readings on their way to the disk, and the chart’s questions',
    load: async () => (await import('./bench/store.ts')).benchStore,
  },
  {
    name: 'estimate',
    about: 'how right a footprint is, ours beside others’, on loads of a real llama-server',
    load: async () => (await import('./bench/estimate.ts')).benchEstimate,
  },
];

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    json: { type: 'boolean' },
    short: { type: 'boolean' },
    minutes: { type: 'string' },
  },
  strict: true,
});
const minutes = Number(values.minutes ?? 0);
const wanted = values.only ?? PARTS.map((part) => part.name);
const unknown = wanted.find((name) => !PARTS.some((part) => part.name === name));
if (unknown === undefined) {
  const reports: BenchReport[] = [];
  for (const part of PARTS.filter(({ name }) => wanted.includes(name))) {
    if (values.json !== true) process.stdout.write(`${part.name}: ${part.about}\n`);
    const report = await (await part.load())(values.short === true, minutes > 0 ? minutes : null);
    if (report.failed === true) process.exitCode = 1;
    reports.push(report);
    if (values.json !== true) process.stdout.write(`${reportText(report)}\n`);
  }
  const machine = {
    cpu: cpus()[0]?.model ?? null,
    cores: cpus().length,
    memoryBytes: totalmem(),
    kernel: release(),
    node: process.version,
  };
  if (values.json === true) process.stdout.write(`${JSON.stringify({ machine, reports })}\n`);
} else {
  process.stderr.write(
    `There is no part ${unknown}; there are ${PARTS.map((part) => part.name).join(', ')}.\n`,
  );
  process.exitCode = 64;
}

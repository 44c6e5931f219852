import { release } from 'node:os';
import { discoverCards } from '../../electron/core/devices/discovery.ts';
import { type SmiAnswer, smiQuestions } from '../../electron/core/devices/nvidia-smi-query.ts';
import { loadNvml, type NvmlBinding, type NvmlHandle } from '../../electron/core/devices/nvml-binding.ts';
import {
  cardBusyPercent,
  cardDisplayActive,
  cardMemory,
  cardMig,
  cardName,
  cardProcesses,
} from '../../electron/core/devices/nvml-card.ts';
import { processScanner } from '../../electron/core/devices/process-scan.ts';
import type { CardFacts } from '../../electron/core/devices/reader.ts';
import { samplerCore } from '../../electron/core/devices/sampler-core.ts';
import type { SysTree } from '../../electron/core/devices/sysfs.ts';
import { runTool } from '../../electron/core/devices/tool-run.ts';
import { procfs } from '../../electron/core/process/procfs.ts';
import { messageOf } from '../../shared/errors.ts';
import { type Attribution, attribute } from './attribution.ts';
import { compareFields, type FieldResult, type NvmlView } from './compare.ts';
import { askMissing, type MissingResult, type PowerResult, watchPower } from './power.ts';

export interface Cost {
  readonly what: string;
  readonly medianMs: number;
  readonly worstMs: number;
  readonly rounds: number;
}

export interface CardResult {
  readonly card: CardFacts;
  readonly fields: readonly FieldResult[];
  readonly fieldsWhy: string | null;
  readonly costs: readonly Cost[];
  readonly attribution: Attribution | null;
}

export interface GpuReport {
  readonly at: string;
  readonly kernel: string;
  readonly node: string;
  /** Why NVML can't be used; null: it can. */
  readonly nvmlWhy: string | null;
  readonly smiWhy: string | null;
  readonly power: readonly PowerResult[];
  readonly missing: MissingResult;
  readonly cards: readonly CardResult[];
  /** What the sampler as a whole says of this machine, as the runtime would have it. */
  readonly sampler: readonly {
    readonly name: string;
    readonly source: string;
    readonly totalBytes: number | null;
    readonly freeBytes: number | null;
    readonly error: string | null;
  }[];
  readonly troubles: readonly string[];
}

/** All that is found out, on whatever machine; never throws for a card or driver that is not there. */
export async function checkGpus(
  tree: SysTree,
  command: readonly [string, ...string[]],
  nowIso: string,
): Promise<GpuReport> {
  const found = discoverCards(tree).filter((card) => card.kind === 'nvidia');
  // Before anything touches a card: afterwards none would be asleep.
  const power: PowerResult[] = [];
  for (const card of found) power.push(await watchPower(tree, card));
  const missing = await askMissing(tree);
  const askSmi = smiQuestions((args) => runTool('nvidia-smi', args));
  const smi = await askSmi();
  const loaded = loadNvml();
  const code = loaded.ok ? loaded.nvml.init() : null;
  const nvmlWhy = loaded.ok ? (code === 0 ? null : `nvmlInit answered ${code}`) : loaded.why;
  const cards: CardResult[] = [];
  if (loaded.ok && nvmlWhy === null) {
    for (const card of found) cards.push(await checkCard(loaded.nvml, card, askSmi, command));
    loaded.nvml.shutdown();
  }
  const whole = await sampler(tree);
  return {
    at: nowIso,
    kernel: release(),
    node: process.version,
    nvmlWhy,
    smiWhy: smi.ok ? null : smi.trouble.message,
    power,
    missing,
    cards,
    ...whole,
  };
}

async function checkCard(
  nvml: NvmlBinding,
  card: CardFacts,
  askSmi: () => Promise<SmiAnswer>,
  command: readonly [string, ...string[]],
): Promise<CardResult> {
  const { code, handle } = nvml.handleByPci(card.pciAddress);
  if (code !== 0) {
    const fieldsWhy = `NVML answered ${code} for ${card.pciAddress}.`;
    return { card, fields: [], fieldsWhy, costs: [], attribution: null };
  }
  const before = viewOf(nvml, handle, card);
  const smi = await askSmi();
  const after = viewOf(nvml, handle, card);
  const gpu = smi.ok ? smi.report.gpus.find((one) => one.pciAddress === card.pciAddress) : undefined;
  const fieldsWhy = !smi.ok ? smi.trouble.message : gpu === undefined ? 'nvidia-smi does not list it.' : null;
  let attribution: Attribution;
  try {
    attribution = await attribute({ nvml, handle, askSmi, pciAddress: card.pciAddress, command });
  } catch (thrown) {
    attribution = { why: messageOf(thrown), steps: [], nvmlWorstBytes: null, smiWorstBytes: null };
  }
  return {
    card,
    fields: gpu === undefined ? [] : compareFields(before, after, gpu),
    fieldsWhy,
    costs: [
      await cost('NVML: memory and use', 200, () => {
        cardMemory(nvml, handle);
        cardBusyPercent(nvml, handle);
      }),
      await cost('NVML: processes', 100, () => void cardProcesses(nvml, handle)),
      await cost('nvidia-smi, run', smi.ok ? 10 : 0, async () => void (await askSmi())),
    ],
    attribution,
  };
}

function viewOf(nvml: NvmlBinding, handle: NvmlHandle, card: CardFacts): NvmlView {
  const memory = cardMemory(nvml, handle);
  const figures = memory.ok ? memory.value : null;
  return {
    pciAddress: card.pciAddress,
    name: cardName(nvml, handle),
    totalBytes: figures?.totalBytes ?? null,
    reservedBytes: figures?.reservedBytes ?? null,
    usedBytes: figures?.usedBytes ?? null,
    freeBytes: figures?.freeBytes ?? null,
    busyPercent: cardBusyPercent(nvml, handle),
    displayActive: cardDisplayActive(nvml, handle),
    migEnabled: cardMig(nvml, handle).enabled,
  };
}

async function cost(what: string, rounds: number, run: () => void | Promise<void>): Promise<Cost> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const beganAtMs = performance.now();
    await run();
    times.push(performance.now() - beganAtMs);
  }
  times.sort((a, b) => a - b);
  const at = (share: number): number =>
    times[Math.min(times.length - 1, Math.floor(share * times.length))] ?? Number.NaN;
  return { what, medianMs: at(0.5), worstMs: at(1), rounds };
}

async function sampler(tree: SysTree): Promise<Pick<GpuReport, 'sampler' | 'troubles'>> {
  const reader = procfs();
  const scanner = processScanner(tree, reader.pageBytes, () => new Set([process.pid]));
  const names = {
    name: (pid: number) => reader.stat(pid)?.comm ?? null,
    startTimeTicks: (pid: number) => reader.stat(pid)?.startTimeTicks ?? null,
  };
  const core = samplerCore(
    { tree, scanner, names },
    { devices: null, periodMs: 500, processPeriodMs: 2000, memory: {} },
  );
  // The first one finds the devices; a tool's answer comes with a later one.
  let set = await core.tick(performance.now());
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  set = await core.tick(performance.now());
  core.close();
  return {
    sampler: set.devices.map(({ name, source, totalBytes, freeBytes, error }) => ({
      name,
      source,
      totalBytes,
      freeBytes,
      error,
    })),
    troubles: set.troubles.map(({ message }) => message),
  };
}

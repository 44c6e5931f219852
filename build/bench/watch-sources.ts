import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { graphics } from 'systeminformation';
import { amdgpuReader } from '../../electron/core/devices/amdgpu-reader.ts';
import { discoverCards } from '../../electron/core/devices/discovery.ts';
import { smiQuestions } from '../../electron/core/devices/nvidia-smi-query.ts';
import { loadNvml } from '../../electron/core/devices/nvml-binding.ts';
import { nvmlReader } from '../../electron/core/devices/nvml-reader.ts';
import type { CardFacts, DeviceReader } from '../../electron/core/devices/reader.ts';
import { machineTree } from '../../electron/core/devices/sysfs.ts';
import { runTool } from '../../electron/core/devices/tool-run.ts';
import type { BenchSide } from './report.ts';
import { treeAt } from './tree-at.ts';

const PERIOD_MS = 500;
const CARD = '/sys/class/drm/card1';
const FILES: Readonly<Record<string, string>> = {
  mem_info_vram_total: '34208743424',
  mem_info_vram_used: '17104371712',
  mem_info_gtt_total: '33554432000',
  mem_info_gtt_used: '104857600',
  gpu_busy_percent: '7',
  'power/runtime_status': 'active',
  'power/control': 'on',
};

export interface Measured {
  readonly sides: readonly BenchSide[];
  readonly notes: readonly string[];
}

/** What one sample of a card costs, by where it is read. */
export async function benchSources(folder: string, short: boolean): Promise<Measured> {
  const rounds = short ? 50 : 2_000;
  const notes: string[] = [];
  const sides: BenchSide[] = [
    { name: 'amdgpu: sysfs of a card, five files', samplesUs: await timed(amdgpu(folder), rounds) },
  ];
  const cards = discoverCards(machineTree).filter((card) => card.kind === 'nvidia');
  const nvml = cards.length > 0 ? loadNvml() : null;
  if (nvml?.ok) {
    const reader = nvmlReader(machineTree, cards, () => nvml, null, NAMES, PERIOD_MS);
    const read = reading(reader);
    sides.push({ name: 'nvidia: NVML', samplesUs: await timed(read, rounds) });
    reader.close();
  } else notes.push('NVML: no NVIDIA card here, so it was not measured; `npm run gpu-check` is for one.');

  const real = spawnSync('nvidia-smi', ['-L'], { encoding: 'utf8' }).status === 0;
  const ask = smiQuestions((args) => runTool(real ? 'nvidia-smi' : plainSmi(folder), args));
  const runs = short ? 2 : 30;
  sides.push({
    name: real ? 'nvidia: nvidia-smi, spawned' : 'nvidia: a program that is spawned and prints, no driver',
    samplesUs: await timed(async () => void (await ask()), runs),
  });
  if (!real)
    notes.push(
      'nvidia-smi is not here: a shell script that prints a saved answer stands in for it, so that is what spawning costs; the real one takes 50 ms to 2 s more in the driver.',
    );
  const library = await timed(async () => void (await graphics()), short ? 1 : 12);
  sides.push({ name: 'systeminformation, graphics()', samplesUs: library });
  return { sides, notes };
}

const NAMES = { name: () => null, startTimeTicks: () => null };

/** The card's own files, laid out in a folder on a disk: what the kernel adds to make their text is not in it. */
function amdgpu(folder: string): () => Promise<void> {
  const device = join(folder, CARD, 'device');
  mkdirSync(join(device, 'power'), { recursive: true });
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(device, name), `${text}\n`);
  const card: CardFacts = {
    id: 'pci:0000:03:00.0',
    kind: 'amdgpu',
    name: 'Card',
    pciAddress: '0000:03:00.0',
    path: CARD,
    memory: 'discrete',
    drivesDisplay: true,
    maySuspend: false,
    notes: [],
  };
  return reading(amdgpuReader(treeAt(folder), card, PERIOD_MS));
}

function reading(reader: DeviceReader): () => Promise<void> {
  return async () => {
    const got = await reader.read({ nowMs: performance.now(), processes: false, openCards: new Set() });
    if (got.devices[0]?.freeBytes == null)
      throw new Error(got.devices[0]?.error ?? 'The card gave no figures.');
  };
}

/** Prints one card as `nvidia-smi -q -x` does, from our own words. */
function plainSmi(folder: string): string {
  const program = join(folder, 'nvidia-smi');
  const xml = `<?xml version="1.0" ?>
<nvidia_smi_log><driver_version>570.00</driver_version><attached_gpus>1</attached_gpus>
<gpu id="00000000:01:00.0"><product_name>Card</product_name><minor_number>0</minor_number>
<fb_memory_usage><total>24564 MiB</total><reserved>364 MiB</reserved><used>4000 MiB</used><free>20200 MiB</free></fb_memory_usage>
<utilization><gpu_util>3 %</gpu_util></utilization><processes></processes></gpu></nvidia_smi_log>`;
  writeFileSync(program, `#!/bin/sh\ncat <<'END'\n${xml}\nEND\n`);
  chmodSync(program, 0o755);
  return program;
}

async function timed(run: () => Promise<void>, rounds: number): Promise<readonly number[]> {
  const samplesUs: number[] = [];
  const warmUp = Math.min(20, Math.floor(rounds / 4));
  for (let round = 0; round < warmUp + rounds; round += 1) {
    const beganAtMs = performance.now();
    await run();
    if (round >= warmUp) samplesUs.push((performance.now() - beganAtMs) * 1000);
  }
  return samplesUs;
}

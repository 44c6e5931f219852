import { readPower } from './amdgpu-sysfs.ts';
import { backOff } from './back-off.ts';
import type { NvidiaGpu, NvidiaTrouble } from './nvidia.ts';
import { withNvidiaMemory } from './nvidia-sample.ts';

import { type RunSmi, type SmiAnswer, smiQuestions } from './nvidia-smi-query.ts';
import type { NvidiaReport } from './nvidia-smi-xml.ts';
import type { ProcessNames } from './nvml-reader.ts';
import {
  type CardFacts,
  type DeviceReader,
  emptySample,
  LEFT_ALONE_NOTE,
  type Reading,
  type ReadRequest,
  SUSPENDED_NOTE,
  shouldLeaveAlone,
} from './reader.ts';
import type { DeviceSample, ProcessMemory } from './sample.ts';
import type { SysTree } from './sysfs.ts';
import { shortName } from './wording.ts';

/** A run takes 50 ms to 2 s of a core's time in the driver, so it is not made at each tick. */
export const NVIDIA_SMI_PERIOD_MS = 3000;

/**
 * All NVIDIA cards through nvidia-smi (nvidia-smi-query.ts says how it is asked). A failure is never
 * final: at boot the program may start before the driver, so it is run again with growing gaps.
 * Between runs the last reading stands with its own time. `setting` is what the settings say of the
 * memory of cards that only the driver lists; those in `cards` carry their own.
 */
export function nvidiaSmiReader(
  tree: SysTree,
  cards: readonly CardFacts[],
  run: RunSmi,
  processes: ProcessNames,
  setting: 'discrete' | 'unified' | null = null,
): DeviceReader {
  let last: Reading = { devices: [], processes: [], troubles: [] };
  let running = false;
  let nextAtMs = Number.NEGATIVE_INFINITY;
  const ask = smiQuestions(run);
  const retry = backOff(NVIDIA_SMI_PERIOD_MS, 60_000);

  const takeIn = (answer: SmiAnswer, askedAtMs: number): void => {
    if (answer.ok) {
      retry.worked();
      last = readingOf(answer.report, cards, askedAtMs);
    } else {
      retry.failed(askedAtMs);
      last = failureOf(answer.trouble, cards, askedAtMs);
    }
  };

  const readingOf = (report: NvidiaReport, known: readonly CardFacts[], atMs: number): Reading => {
    const readings = report.gpus.map((gpu) =>
      readCard(
        tree,
        known.find((entry) => entry.pciAddress === gpu.pciAddress) ?? unlistedCard(gpu, setting),
        gpu,
        atMs,
      ),
    );
    const devices = readings.map(({ sample }) => sample);
    const idOf = (pciAddress: string | null): string | null =>
      devices.find((sample) => sample.pciAddress === pciAddress)?.id ?? null;
    const rows = report.processes.flatMap((row): readonly ProcessMemory[] => {
      const deviceId = idOf(row.pciAddress);
      if (deviceId === null) return [];
      const name = processes.name(row.pid) ?? row.name?.split('/').at(-1) ?? `process ${row.pid}`;
      return [
        {
          pid: row.pid,
          startTimeTicks: processes.startTimeTicks(row.pid),
          name,
          deviceId,
          bytes: row.bytes,
          gttBytes: null,
          type: row.type,
          source: 'nvidia-smi',
        },
      ];
    });
    const troubles = [
      ...report.troubles.map((trouble) => ({ ...trouble, deviceId: null })),
      ...readings.flatMap((reading) => reading.troubles),
    ];
    return { devices, processes: rows, troubles };
  };

  const read = (request: ReadRequest): Reading => {
    const resting = cards.flatMap((card): readonly DeviceSample[] => {
      const power = readPower(tree.readText, card.path);
      const note =
        power === 'suspended' ? SUSPENDED_NOTE : shouldLeaveAlone(card, request) ? LEFT_ALONE_NOTE : null;
      if (note === null) return [];
      const empty = emptySample(card, 'nvidia-smi', request.nowMs, NVIDIA_SMI_PERIOD_MS);
      return [{ ...empty, power, notes: [...card.notes, note] }];
    });
    // nvidia-smi touches every card, so one that sleeps keeps it from being run at all.
    if (cards.length > 0 && resting.length > 0) {
      const others = last.devices.filter((sample) => !resting.some((entry) => entry.id === sample.id));
      return { devices: [...resting, ...others], processes: [], troubles: [] };
    }
    if (!running && request.nowMs >= nextAtMs && retry.due(request.nowMs)) {
      running = true;
      nextAtMs = request.nowMs + NVIDIA_SMI_PERIOD_MS;
      void ask()
        .then((answer) => takeIn(answer, request.nowMs))
        .finally(() => {
          running = false;
        });
    }
    return last;
  };

  return { read, close: () => {} };
}

function readCard(
  tree: SysTree,
  card: CardFacts,
  gpu: NvidiaGpu,
  atMs: number,
): ReturnType<typeof withNvidiaMemory> {
  const named: DeviceSample = {
    ...emptySample(card, 'nvidia-smi', atMs, NVIDIA_SMI_PERIOD_MS),
    name: shortName(gpu.name ?? card.name),
    power: 'active',
    drivesDisplay: card.drivesDisplay === true ? true : (gpu.displayActive ?? card.drivesDisplay),
    busyPercent: gpu.busyPercent,
  };
  return withNvidiaMemory(tree, card, named, { ...gpu, answer: gpu.memoryAnswer });
}

/** A card that only the driver lists: WSL and containers show no PCI tree. */
function unlistedCard(gpu: NvidiaGpu, setting: 'discrete' | 'unified' | null): CardFacts {
  return {
    id: gpu.pciAddress === null ? `nvidia:${gpu.index ?? 0}` : `pci:${gpu.pciAddress}`,
    kind: 'nvidia',
    name: gpu.name ?? 'NVIDIA GPU',
    pciAddress: gpu.pciAddress ?? '',
    path: '',
    memory: setting ?? 'discrete',
    ...(setting === null ? {} : { memorySetting: setting }),
    drivesDisplay: gpu.displayActive,
    maySuspend: false,
    notes: [],
  };
}

function failureOf(trouble: NvidiaTrouble, cards: readonly CardFacts[], atMs: number): Reading {
  const devices = cards.map((card) => ({
    ...emptySample(card, 'nvidia-smi', atMs, NVIDIA_SMI_PERIOD_MS),
    error: trouble.message,
  }));
  return { devices, processes: [], troubles: [{ ...trouble, deviceId: null }] };
}

import { amdgpuReader } from './amdgpu-reader.ts';
import { chooseCards } from './chosen-cards.ts';
import { tegraModel } from './discovery.ts';
import { drmReader } from './drm-reader.ts';
import { programNames } from './name-programs.ts';
import { nvidiaSmiReader } from './nvidia-smi-reader.ts';
import { loadNvml } from './nvml-binding.ts';
import { nvmlReader, type ProcessNames } from './nvml-reader.ts';
import { isFallbackName } from './pci-names.ts';
import { mergeProcesses, plausibleRows } from './process-memory.ts';
import type { ProcessScanner, Scan } from './process-scan.ts';
import { type CardFacts, type DeviceReader, emptySample, HOST_MEMORY_NOTE, type Reading } from './reader.ts';
import { rocmReader, withRocmFallback } from './rocm-reader.ts';
import type { DeviceSample, ProcessMemory, SamplerTrouble, SampleSet } from './sample.ts';
import type { SamplerConfig } from './sampler-messages.ts';
import { simulatedReader } from './simulated-reader.ts';
import type { SysTree } from './sysfs.ts';
import { systemReader } from './system-reader.ts';
import { runTool, type ToolRun } from './tool-run.ts';
import { wordedSample, wordedTrouble } from './wording.ts';

const REDISCOVER_MS = 30_000;
/** After a failure the machine is looked at again sooner: a driver may have been reloaded. */
const REDISCOVER_FAILED_MS = 5000;
/** A walk over /proc is dear: however urgent, not more often than this. */
const HURRIED_PROCESSES_MS = 500;
/** A change of this much in a device's use has somebody behind it who is to be named. */
const JUMP_BYTES = 256 * 1024 * 1024;
const JUMP_PAUSE_MS = 150;

export interface SamplerCore {
  /** One turn; never rejects. */
  tick(nowMs: number): Promise<SampleSet>;
  watch(pids: readonly number[]): void;
  /** The next turn reads processes too, unless they were read within the last half second. */
  hurry(): void;
  /** The next turn looks for devices anew. */
  lookAgain(): void;
  close(): void;
}

export interface CoreParts {
  readonly tree: SysTree;
  readonly scanner: ProcessScanner;
  readonly names: ProcessNames;
  /** Default: `rocm-smi` on the PATH. */
  readonly runRocmSmi?: (args: readonly string[]) => Promise<ToolRun>;
  /** Names of cards by PCI address, for those pci.ids does not know; may take seconds, asked once. */
  readonly lookUpNames?: (cards: readonly CardFacts[]) => Promise<ReadonlyMap<string, string>>;
}

/** What the sampler child does, without its process: finds the devices, reads them, tells what failed. */
export function samplerCore(parts: CoreParts, config: SamplerConfig): SamplerCore {
  const { tree, scanner, names } = parts;
  let readers: readonly DeviceReader[] = [];
  let cards: readonly CardFacts[] = [];
  let shape = '';
  let lost: readonly CardFacts[] = [];
  let discoverAtMs = Number.NEGATIVE_INFINITY;
  let processesAtMs = Number.NEGATIVE_INFINITY;
  let processesReadMs = Number.NEGATIVE_INFINITY;
  let scanned: Scan | null = null;
  let watched: readonly number[] = [];
  let sequence = 0;
  let cardNames: ReadonlyMap<string, string> = new Map();
  let namesAsked = false;
  /** In use when processes were last read, by device. */
  let usedThen: ReadonlyMap<string, number | null> = new Map();
  const nameAll = programNames(tree);

  const askNames = (found: readonly CardFacts[]): void => {
    const nameless = found.filter((card) => isFallbackName(card.name));
    if (namesAsked || nameless.length === 0 || parts.lookUpNames === undefined) return;
    namesAsked = true;
    void parts.lookUpNames(found).then((answer) => {
      cardNames = answer;
    });
  };
  const named = (sample: DeviceSample): DeviceSample => {
    const name = isFallbackName(sample.name) ? cardNames.get(sample.pciAddress ?? '') : undefined;
    return name === undefined ? sample : { ...sample, name };
  };

  const rediscover = (nowMs: number): void => {
    discoverAtMs = nowMs + REDISCOVER_MS;
    const found = chooseCards(tree, config.devices, config.memory);
    askNames(found);
    const missing = [...cards, ...lost].filter((card) => !found.some((entry) => entry.id === card.id));
    lost = missing.filter((card, at) => missing.findIndex((entry) => entry.id === card.id) === at);
    const next = JSON.stringify(found);
    if (next === shape) return;
    shape = next;
    for (const reader of readers) reader.close();
    cards = found;
    readers = buildReaders(parts, config, found, (id) =>
      scanned === null ? null : scanned.rows.filter((row) => row.deviceId === id),
    );
  };

  const readAll = async (nowMs: number, processes: boolean): Promise<readonly Reading[]> => {
    const request = { nowMs, processes, openCards: scanned?.openCards ?? null };
    const readings: Reading[] = [];
    for (const reader of readers) {
      try {
        readings.push(await reader.read(request));
      } catch (thrown) {
        const message = `A reader failed: ${thrown instanceof Error ? thrown.message : String(thrown)}.`;
        readings.push({
          devices: [],
          processes: [],
          troubles: [{ code: 'reader-failed', message, deviceId: null }],
        });
      }
    }
    return readings;
  };

  /** With no reading at all: cards that are there are unknown, and only without a card the system's memory counts. */
  const stand = async (nowMs: number): Promise<DeviceSample[]> => {
    if (cards.length > 0) return cards.map((card) => unreadSample(card, nowMs, config.periodMs));
    const request = { nowMs, processes: false, openCards: null };
    const plain = await plainSystem(tree, config.periodMs).read(request);
    return plain.devices.map(wordedSample);
  };

  const hasJumped = ({ id, usedBytes }: DeviceSample): boolean => {
    const then = usedThen.get(id) ?? null;
    return usedBytes !== null && then !== null && Math.abs(usedBytes - then) >= JUMP_BYTES;
  };

  const tick = async (nowMs: number): Promise<SampleSet> => {
    if (nowMs >= discoverAtMs) rediscover(nowMs);
    const wantProcesses = nowMs >= processesAtMs;
    if (wantProcesses) {
      processesReadMs = nowMs;
      processesAtMs = nowMs + config.processPeriodMs - config.periodMs / 2;
      if (cards.length > 0) scanned = scanner.scan(nowMs, cards);
    }
    const readings = await readAll(nowMs, wantProcesses);
    const lostSamples = lost.map((card) => lostSample(card, nowMs, config.periodMs));
    let devices = [...readings.flatMap((reading) => reading.devices), ...lostSamples].map((sample) =>
      wordedSample(named(sample)),
    );
    const troubles: SamplerTrouble[] = readings.flatMap((reading) => [...reading.troubles]);
    for (const sample of lostSamples) {
      troubles.push({ code: 'device-lost', message: sample.error ?? '', deviceId: sample.id });
    }
    if (devices.length === 0) devices = await stand(nowMs);
    // Whose it is, is told with the jump and not two seconds after it: until then it would be the desktop's.
    if (wantProcesses) usedThen = new Map(devices.map((sample) => [sample.id, sample.usedBytes]));
    else if (nowMs - processesReadMs >= JUMP_PAUSE_MS && devices.some(hasJumped)) {
      processesAtMs = nowMs;
      return tick(nowMs);
    }
    if (troubles.length > 0) discoverAtMs = Math.min(discoverAtMs, nowMs + REDISCOVER_FAILED_MS);
    const rows = wantProcesses ? nameAll(rowsOf(readings, scanned, devices, scanner, watched)) : null;
    sequence += 1;
    return { sequence, takenAtMs: nowMs, devices, processes: rows, troubles: troubles.map(wordedTrouble) };
  };

  return {
    tick,
    watch: (pids) => {
      watched = pids;
    },
    hurry: () => {
      processesAtMs = Math.min(processesAtMs, processesReadMs + HURRIED_PROCESSES_MS);
    },
    lookAgain: () => {
      discoverAtMs = Number.NEGATIVE_INFINITY;
    },
    close: () => {
      for (const reader of readers) reader.close();
      readers = [];
    },
  };

  function buildReaders(
    shared: CoreParts,
    settings: SamplerConfig,
    found: readonly CardFacts[],
    usedBy: (id: string) => readonly ProcessMemory[] | null,
  ): readonly DeviceReader[] {
    const period = settings.periodMs;
    const built: DeviceReader[] = found
      .filter((card) => card.kind !== 'amdgpu' && card.kind !== 'nvidia')
      .map((card) => drmReader(shared.tree, card, usedBy, period));
    const amd = found.filter((card) => card.kind === 'amdgpu');
    // A container may have the compute driver's node and no view of the cards in /sys.
    if (amd.length > 0 || (settings.devices === null && shared.tree.exists('/dev/kfd'))) {
      const rocm = rocmReader(shared.tree, amd, shared.runRocmSmi ?? ((args) => runTool('rocm-smi', args)));
      const readers = amd.map((card) => amdgpuReader(shared.tree, card, period));
      built.push(amd.length > 0 ? withRocmFallback(readers, rocm) : rocm);
    }
    const nvidia = found.filter((card) => card.kind === 'nvidia');
    const asked = settings.devices?.find((entry) => entry.kind === 'nvidia') ?? null;
    const smi = asked?.smi ?? 'nvidia-smi';
    // WSL shows the card only through its paravirtual device; nvidia-smi lists it.
    const hidden = nvidia.length === 0 && settings.devices === null && shared.tree.exists('/dev/dxg');
    if (nvidia.length > 0 || hidden || asked !== null) {
      const fallback = nvidiaSmiReader(
        shared.tree,
        nvidia,
        (args) => runTool(smi, args),
        names,
        asked?.memory ?? null,
      );
      built.push(
        nvidia.length > 0 ? nvmlReader(shared.tree, nvidia, loadNvml, fallback, names, period) : fallback,
      );
    }
    (settings.devices ?? []).forEach((entry, at) => {
      if (entry.kind === 'system') built.push(plainSystem(shared.tree, period));
      if (entry.kind === 'simulated') {
        const id = `sim:${(settings.devices ?? []).slice(0, at).filter(({ kind }) => kind === 'simulated').length}`;
        built.push(simulatedReader(shared.tree.readText, entry.path, id, names.startTimeTicks, period));
      }
    });
    return built;
  }
}

function plainSystem(tree: SysTree, periodMs: number): DeviceReader {
  const tegra = tegraModel(tree);
  return tegra === null
    ? systemReader(tree, { kind: 'system', name: 'System memory', notes: [], drivesDisplay: null }, periodMs)
    : systemReader(
        tree,
        { kind: 'unified', name: tegra, notes: [HOST_MEMORY_NOTE], drivesDisplay: null },
        periodMs,
      );
}

function lostSample(card: CardFacts, nowMs: number, periodMs: number): DeviceSample {
  const error = `${card.name} (${card.pciAddress}) was there and is gone: it was unplugged, reset, or its driver was unloaded. It is used again when it comes back.`;
  return { ...emptySample(card, 'none', nowMs, periodMs), error };
}

function unreadSample(card: CardFacts, nowMs: number, periodMs: number): DeviceSample {
  const error = `${card.name} (${card.pciAddress}) can’t be read now; it is tried again by itself. See the other notices for the reason.`;
  return { ...emptySample(card, 'none', nowMs, periodMs), error };
}

function rowsOf(
  readings: readonly Reading[],
  scanned: Scan | null,
  devices: readonly DeviceSample[],
  scanner: ProcessScanner,
  watched: readonly number[],
): readonly ProcessMemory[] {
  const shared = devices.filter((sample) => sample.memory !== 'discrete' && sample.error === null);
  const resident =
    shared.length === 1 && watched.length > 0 ? scanner.resident(watched, shared[0]?.id ?? '') : [];
  const rows = mergeProcesses([
    ...(scanned?.rows ?? []),
    ...readings.flatMap((reading) => [...reading.processes]),
    ...resident,
  ]);
  return devices.reduce((kept, sample) => plausibleRows(kept, sample.id, sample.totalBytes), rows);
}

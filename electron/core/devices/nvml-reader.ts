import { readPower } from './amdgpu-sysfs.ts';
import { backOff } from './back-off.ts';
import type { MemoryAnswer } from './nvidia-memory.ts';
import { withNvidiaMemory } from './nvidia-sample.ts';
import type { NvmlBinding, NvmlHandle, NvmlLoad } from './nvml-binding.ts';
import {
  cardBusyPercent,
  cardDisplayActive,
  cardMemory,
  cardMig,
  cardName,
  cardProcesses,
} from './nvml-card.ts';
import {
  NVML_FUNCTION_NOT_FOUND,
  NVML_NO_PERMISSION,
  NVML_NOT_SUPPORTED,
  NVML_SUCCESS,
  nvmlTrouble,
} from './nvml-layout.ts';
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
import type { DeviceSample, ProcessMemory, SamplerTrouble } from './sample.ts';
import type { SysTree } from './sysfs.ts';

export interface ProcessNames {
  readonly name: (pid: number) => string | null;
  readonly startTimeTicks: (pid: number) => number | null;
}

interface OpenCard {
  readonly handle: NvmlHandle;
  readonly name: string | null;
  readonly displayActive: boolean | null;
}

/**
 * All NVIDIA cards through NVML. An open NVML session keeps every card it has touched awake, so
 * power is asked of sysfs first, a card that sleeps or could sleep is not touched, and the session
 * is closed as soon as no card needs it. `fallback` reads (nvidia-smi) while NVML does not work.
 */
export function nvmlReader(
  tree: SysTree,
  cards: readonly CardFacts[],
  load: () => NvmlLoad,
  fallback: DeviceReader | null,
  processes: ProcessNames,
  periodMs: number,
): DeviceReader {
  let loaded: NvmlLoad | null = null;
  let session: { readonly nvml: NvmlBinding; readonly open: Map<string, OpenCard> } | null = null;
  let failure: SamplerTrouble | null = null;
  const retry = backOff(1000, 60_000);

  const closeSession = (): void => {
    session?.nvml.shutdown();
    session = null;
  };

  const openSession = (nowMs: number): typeof session => {
    if (session !== null) return session;
    if (!retry.due(nowMs)) return null;
    if (loaded === null || !loaded.ok) loaded = load();
    if (!loaded.ok) {
      retry.failed(nowMs);
      failure = {
        code: 'nvidia-no-nvml',
        message: `NVIDIA’s management library can’t be loaded (${loaded.why}); nvidia-smi is asked instead.`,
        deviceId: null,
      };
      return null;
    }
    const code = loaded.nvml.init();
    if (code !== NVML_SUCCESS) {
      retry.failed(nowMs);
      failure = { ...nvmlTrouble(code, 'a start'), deviceId: null };
      return null;
    }
    retry.worked();
    failure = null;
    session = { nvml: loaded.nvml, open: new Map() };
    return session;
  };

  const readCard = (
    live: NonNullable<typeof session>,
    card: CardFacts,
    power: DeviceSample['power'],
    request: ReadRequest,
  ): Reading => {
    const empty = { ...emptySample(card, 'nvml', request.nowMs, periodMs), power };
    const fail = (code: number, what: string): Reading => {
      const trouble = nvmlTrouble(code, what);
      const error = `${card.name}: ${trouble.message}`;
      return {
        devices: [{ ...empty, error }],
        processes: [],
        troubles: [{ code: trouble.code, message: error, deviceId: card.id }],
      };
    };
    let open = live.open.get(card.id);
    if (open === undefined) {
      const { code, handle } = live.nvml.handleByPci(card.pciAddress);
      if (code !== NVML_SUCCESS) return fail(code, 'the card');
      open = {
        handle,
        name: cardName(live.nvml, handle),
        displayActive: cardDisplayActive(live.nvml, handle),
      };
      live.open.set(card.id, open);
    }
    const memory = cardMemory(live.nvml, open.handle);
    const refused = memory.ok ? null : answerOf(memory.code);
    if (!memory.ok && refused === null) {
      live.open.delete(card.id);
      return fail(memory.code, 'its memory');
    }
    const named = {
      ...empty,
      name: open.name ?? card.name,
      drivesDisplay: card.drivesDisplay === true ? true : (open.displayActive ?? card.drivesDisplay),
      busyPercent: cardBusyPercent(live.nvml, open.handle),
    };
    const told = memory.ok ? memory.value : NO_FIGURES;
    // Asked at each turn, because instances come and go; one call where the card is not split.
    const mig = cardMig(live.nvml, open.handle);
    const { sample, troubles } = withNvidiaMemory(tree, card, named, {
      // A card without memory of its own answers 0 bytes with some drivers.
      answer: memory.ok && told.totalBytes === 0 ? 'not-supported' : (refused ?? 'given'),
      totalBytes: told.totalBytes,
      usedBytes: told.usedBytes,
      freeBytes: told.freeBytes,
      migEnabled: mig.enabled,
      mig: mig.instances,
    });
    const rows = request.processes ? (cardProcesses(live.nvml, open.handle) ?? []) : [];
    return {
      devices: [sample],
      processes: rows.map(
        (row): ProcessMemory => ({
          pid: row.pid,
          startTimeTicks: processes.startTimeTicks(row.pid),
          name: processes.name(row.pid) ?? `process ${row.pid}`,
          deviceId: card.id,
          bytes:
            row.bytes !== null && sample.totalBytes !== null && row.bytes > sample.totalBytes
              ? null
              : row.bytes,
          gttBytes: null,
          type: row.type,
          source: 'nvml',
        }),
      ),
      troubles,
    };
  };

  const read = async (request: ReadRequest): Promise<Reading> => {
    const resting: DeviceSample[] = [];
    const wanted: { readonly card: CardFacts; readonly power: DeviceSample['power'] }[] = [];
    for (const card of cards) {
      const power = readPower(tree.readText, card.path);
      const alone =
        power === 'suspended' ? SUSPENDED_NOTE : shouldLeaveAlone(card, request) ? LEFT_ALONE_NOTE : null;
      if (alone === null) wanted.push({ card, power });
      else {
        const empty = emptySample(card, 'nvml', request.nowMs, periodMs);
        resting.push({ ...empty, power, notes: [...card.notes, alone] });
      }
    }
    // One session holds all cards it has touched: it goes when one of them is to rest.
    if (resting.some((sample) => session?.open.has(sample.id)) || wanted.length === 0) closeSession();
    if (wanted.length === 0) return { devices: resting, processes: [], troubles: [] };
    const live = openSession(request.nowMs);
    if (live === null) {
      const other = await fallback?.read(request);
      const good = other?.devices.filter((sample) => wanted.some(({ card }) => card.id === sample.id)) ?? [];
      const missing = wanted
        .filter(({ card }) => !good.some((sample) => sample.id === card.id))
        .map(({ card, power }) => ({
          ...emptySample(card, 'nvml', request.nowMs, periodMs),
          power,
          error: failure?.message ?? 'NVIDIA’s management library is tried again soon.',
        }));
      const answered = good.some((sample) => sample.error === null);
      return {
        devices: [...resting, ...good, ...missing],
        processes: other?.processes ?? [],
        troubles: [...(failure !== null && !answered ? [failure] : []), ...(other?.troubles ?? [])],
      };
    }
    const readings = wanted.map(({ card, power }) => readCard(live, card, power, request));
    // After a reset or a driver's reload every call fails until NVML is started anew.
    const told = readings.flatMap((reading) => reading.troubles);
    if (live.open.size === 0 && told.length > 0) {
      closeSession();
      retry.failed(request.nowMs);
      failure = told[0] === undefined ? null : { ...told[0], deviceId: null };
    }
    return {
      devices: [...resting, ...readings.flatMap((reading) => reading.devices)],
      processes: readings.flatMap((reading) => reading.processes),
      troubles: readings.flatMap((reading) => reading.troubles),
    };
  };

  return {
    read,
    close: () => {
      closeSession();
      fallback?.close();
    },
  };
}

/** Why a card gave no figures; null: a failure of the card or driver, to be told as such. */
function answerOf(code: number): MemoryAnswer | null {
  if (code === NVML_NOT_SUPPORTED) return 'not-supported';
  if (code === NVML_NO_PERMISSION) return 'no-permission';
  return code === NVML_FUNCTION_NOT_FOUND ? 'missing' : null;
}

const NO_FIGURES = { totalBytes: null, usedBytes: null, freeBytes: null };

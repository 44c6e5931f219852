import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename } from 'node:path';
import { fail, ok, type Result } from '../../shared/errors.ts';
import { discoverCards } from '../core/devices/discovery.ts';
import { machineTree } from '../core/devices/sysfs.ts';
import { commandFlags } from '../core/ledger/footprint/command-flags.ts';
import { DEVICE_KINDS, type DeviceKind, kindOn } from '../core/ledger/footprint/device-kind.ts';
import { estimate, type Footprint } from '../core/ledger/footprint/estimate.ts';
import { largestFit } from '../core/ledger/footprint/fit.ts';
import type { LoadFlags } from '../core/ledger/footprint/flags.ts';
import { readCompanions, readPlannedModel, sensible } from '../core/ledger/footprint/footprint-of-load.ts';
import {
  findHubFiles,
  type HubFiles,
  hubDraftIn,
  hubFolders,
  hubModelIn,
} from '../core/ledger/footprint/hub-files.ts';
import { referencesInChild } from '../core/ledger/footprint/reference-source.ts';
import { type Invocation, readCount } from './arguments.ts';
import type { Run } from './commands.ts';
import { estimateText, fitText } from './estimate-text.ts';
import { EXIT } from './exit-codes.ts';
import { roomNow } from './room-now.ts';
import { plain } from './terminal.ts';
import { usageError } from './usage.ts';

const MOST = 999_999_999;

/** What a model will take, from its file's header alone. Exit code 65: the file can't be used. */
export const runEstimate: Run = async (invocation, terminal) => {
  const [named = '', ...rest] = invocation.positionals;
  const repository =
    existsSync(named) || named.endsWith('.gguf') ? null : hubModelIn(['-hf', named, ...rest]);
  const draft = hubDraftIn(rest);
  const folders = hubFolders(process.env, homedir());
  const download = repository === null ? null : await findHubFiles(repository, folders);
  const draftDownload = draft === null ? null : await findHubFiles(draft, folders);
  const missing =
    repository !== null && download === null
      ? `${plain(named)} is no file, nor a repository`
      : draft !== null && draftDownload === null
        ? `${plain(draft.repository)} is no repository`
        : null;
  if (missing !== null) {
    terminal.err(`landlord estimate: ${missing} that llama-server has downloaded.`);
    return EXIT.badFile;
  }
  const flags = readFlags(invocation, download, draftDownload);
  if (!flags.ok) return usageError(invocation.command, flags.error.message, terminal);
  const kind = readKind(invocation);
  if (!kind.ok) return usageError(invocation.command, kind.error.message, terminal);
  const path = download?.modelPath ?? named;
  const header = await readPlannedModel(path);
  const companions = header.ok ? await readCompanions(flags.value) : header;
  if (!header.ok || !companions.ok) {
    const error = header.ok ? (companions.ok ? null : companions.error) : header.error;
    terminal.err(`landlord estimate: ${plain(error?.message ?? '')}`);
    return EXIT.badFile;
  }
  const counted = sensible(estimate(header.value, flags.value, kind.value, companions.value), path);
  if (!counted.ok) {
    terminal.err(`landlord estimate: ${plain(counted.error.message)}`);
    return EXIT.badFile;
  }
  const mine = counted.value;
  const footprint = invocation.flag('quick')
    ? mine
    : await checked({ modelPath: path, flags: flags.value, kind: kind.value }, mine);
  const json = invocation.flag('json');
  if (!invocation.flag('fit')) {
    terminal.out(
      json ? JSON.stringify(footprint) : estimateText(basename(path), header.value, footprint, terminal),
    );
    return EXIT.done;
  }
  const room = await roomNow(invocation);
  if (!room.ok) {
    terminal.err(`landlord estimate: ${plain(room.error.message)}`);
    return EXIT.refused;
  }
  // The search goes by arithmetic: where llama.cpp itself finds more, the room counts as that much less.
  const share = Math.min(1, mine.totalBytes / Math.max(1, footprint.totalBytes));
  const bytes = Math.floor(room.value.bytes * share);
  const fit = largestFit(header.value, flags.value, kind.value, bytes, companions.value);
  // All that was counted fits: then it is the same figure, llama.cpp's own where it has one.
  const isAll = fit.kind === 'context' && fit.footprint.totalBytes === mine.totalBytes;
  const found = isAll ? { ...fit, footprint } : fit;
  terminal.out(
    json
      ? JSON.stringify({ ...footprint, fit: { ...found, roomBytes: room.value.bytes } })
      : [
          estimateText(basename(path), header.value, footprint, terminal),
          '',
          fitText(found, room.value, terminal),
        ].join('\n'),
  );
  return EXIT.done;
};

/** llama.cpp is asked for its own figure; a slow disk or a large vocabulary is not waited for longer. */
const REFERENCE_LIMIT_MS = 8_000;

/** llama.cpp's own figure where it can open the file, else ours with a note that says so. */
async function checked(
  load: { readonly modelPath: string; readonly flags: LoadFlags; readonly kind: DeviceKind },
  mine: Footprint,
): Promise<Footprint> {
  const reference = referencesInChild({ nodePath: process.execPath, limitMs: REFERENCE_LIMIT_MS });
  const answer = await reference.footprintOf({
    modelPath: load.modelPath,
    args: [],
    flags: load.flags,
    kind: load.kind,
    build: load.flags.build,
  });
  reference.stop();
  if (answer.ok) return answer.value;
  return { ...mine, notes: [...mine.notes, `By arithmetic alone. ${answer.error.message}`] };
}

/** Each option as llama-server takes it, over what its own flags after `--` say. Errors: `bad_input`. */
function readFlags(
  invocation: Invocation,
  download: HubFiles | null,
  draft: HubFiles | null,
): Result<LoadFlags> {
  const base = { ...commandFlags(invocation.positionals.slice(1)), modelPath: null };
  const counts = {
    ctx: readCount(invocation, 'ctx', 0, MOST),
    parallel: readCount(invocation, 'parallel', 1, 256),
    ubatch: readCount(invocation, 'ubatch', 1, 65_536),
    gpuLayers: readLayers(invocation),
    cpuExperts: readCount(invocation, 'n-cpu-moe', 0, MOST),
    build: readCount(invocation, 'build', 1, MOST),
  };
  for (const count of Object.values(counts)) if (!count.ok) return count;
  const value = (count: Result<number | null>): number | null => (count.ok ? count.value : null);
  const cacheTypeK = invocation.text('cache-type-k') ?? base.cacheTypeK;
  const cacheTypeV = invocation.text('cache-type-v') ?? base.cacheTypeV;
  const unknown = [cacheTypeK, cacheTypeV].find((type) => !CACHE_TYPE.test(type));
  if (unknown !== undefined)
    return fail(
      'bad_input',
      `${unknown} is no cache type; f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 and iq4_nl are.`,
    );
  const flash = invocation.text('flash-attn') ?? base.flashAttention;
  if (flash !== 'on' && flash !== 'off' && flash !== 'auto')
    return fail('bad_input', `--flash-attn takes on, off or auto, not ${flash}.`);
  const ubatch = value(counts.ubatch) ?? base.ubatch;
  return ok({
    ...base,
    contextTokens: invocation.text('ctx') === null ? base.contextTokens : value(counts.ctx) || null,
    slots: value(counts.parallel) ?? base.slots,
    unified: invocation.flag('kv-unified') ? true : base.unified,
    // A larger one is meant, so the logical batch is as large.
    batch: invocation.text('ubatch') === null ? base.batch : Math.max(base.batch, ubatch),
    ubatch,
    cacheTypeK,
    cacheTypeV,
    flashAttention: flash,
    gpuLayers: invocation.text('gpu-layers') === null ? base.gpuLayers : value(counts.gpuLayers),
    cpuExpertLayers: value(counts.cpuExperts) ?? base.cpuExpertLayers,
    fullWindowCache: base.fullWindowCache || invocation.flag('swa-full'),
    draftPath: base.draftPath ?? draft?.modelPath ?? null,
    projectorPath: invocation.text('mmproj') ?? base.projectorPath ?? download?.projectorPath ?? null,
    build: value(counts.build),
  });
}

/** As `--cache-type-k` of llama-server takes them, and ik_llama.cpp's q6_0. */
const CACHE_TYPE = /^(?:f32|f16|bf16|q8_0|q5_1|q5_0|q4_1|q4_0|iq4_nl|q6_0)$/i;

/** `all` and `auto` are all that there are. */
function readLayers(invocation: Invocation): Result<number | null> {
  const text = invocation.text('gpu-layers');
  return text === 'all' || text === 'auto' ? ok(null) : readCount(invocation, 'gpu-layers', 0, MOST);
}

/** Without `--device`, what the first discrete card of this machine runs with; no card: its processor. */
function readKind(invocation: Invocation): Result<DeviceKind> {
  const asked = invocation.text('device');
  if (asked === null) {
    const cards = discoverCards(machineTree);
    const card = cards.find((one) => one.memory === 'discrete') ?? cards[0];
    return ok(card === undefined ? 'cpu' : kindOn(card.kind));
  }
  const kind = DEVICE_KINDS.find((one) => one === asked);
  return kind === undefined
    ? fail('bad_input', `--device takes ${DEVICE_KINDS.join(', ')}, not ${asked}.`)
    : ok(kind);
}

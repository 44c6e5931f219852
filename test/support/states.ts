/** The states under test/fixtures/states: what the page is tested and looked at with. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { EVENT_KINDS, type LandlordEvent } from '../../shared/events.ts';
import { type LandlordState, STATE_SCHEMA } from '../../shared/state.ts';

const folder = fileURLToPath(new URL('../fixtures/states/', import.meta.url));

const time = z.iso.datetime();
const bytes = z.int().nonnegative();
const unknownBytes = bytes.nullable();

/** Strict: a fixture with a misspelt or missing field is no state. Its type is checked against shared/state.ts. */
export const stateSchema: z.ZodType<LandlordState> = z.strictObject({
  schema: z.literal(STATE_SCHEMA),
  revision: z.int(),
  at: time,
  devices: z.array(
    z.strictObject({
      id: z.string().min(1),
      kind: z.enum(['amdgpu', 'nvidia', 'intel', 'nouveau', 'unified', 'system', 'simulated']),
      name: z.string().min(1),
      totalBytes: unknownBytes,
      usedBytes: unknownBytes,
      freeBytes: unknownBytes,
      gttUsedBytes: unknownBytes,
      busyPercent: z.number().min(0).max(100).nullable(),
      sampledAt: time.nullable(),
      source: z.string(),
      health: z.enum(['ok', 'threatened', 'critical', 'stale']),
      capBytes: unknownBytes,
      bookedBytes: bytes,
      floorBytes: unknownBytes,
      hardFloorBytes: unknownBytes,
      outstandingBytes: bytes,
      drivesDisplay: z.boolean().nullable(),
      evictionUnderWay: z.boolean().nullable(),
      unified: z.boolean(),
      notes: z.array(z.string()),
    }),
  ),
  tenants: z.array(
    z.strictObject({
      id: z.string().min(1),
      kind: z.enum(['desktop', 'model', 'agent', 'reserved', 'foreign']),
      name: z.string().min(1),
      deviceId: z.string(),
      predictedBytes: unknownBytes,
      measuredBytes: unknownBytes,
      pids: z.array(z.int()),
      parts: z.array(z.strictObject({ name: z.string(), bytes, pid: z.int().nullable() })).exactOptional(),
    }),
  ),
  models: z.array(
    z.strictObject({
      id: z.string().regex(/^[^/]+\/.+$/),
      backend: z.string(),
      status: z.enum(['unloaded', 'loading', 'loaded', 'sleeping', 'stopping', 'failed']),
      busy: z.boolean().nullable(),
      big: z.boolean(),
      pinned: z.boolean(),
      batchOnly: z.boolean(),
      deviceId: z.string().nullable(),
      predictedBytes: unknownBytes,
      measuredBytes: unknownBytes,
      lastUsedAt: time.nullable(),
      pid: z.int().nullable(),
      port: z.int().nullable(),
      guarded: z.enum(['on', 'observe']),
      small: z.boolean(),
      loadProgress: z.number().min(0).max(1).nullable(),
      contextTokens: z.int().nullable(),
      leavesAt: time.nullable(),
      lastEviction: z.strictObject({ at: time, reason: z.string(), freedBytes: unknownBytes }).nullable(),
    }),
  ),
  lanes: z.array(
    z.strictObject({
      backend: z.string(),
      configured: z.boolean(),
      path: z.string(),
      width: z.int(),
      held: z.boolean().nullable(),
      holders: z.array(
        z.strictObject({
          pid: z.int().nullable(),
          command: z.string().nullable(),
          session: z.string().nullable(),
          model: z.string().nullable(),
          class: z.enum(['interactive', 'batch']).nullable(),
          turn: z.string().nullable(),
          acquiredAt: time.nullable(),
        }),
      ),
      waiting: z.int(),
    }),
  ),
  agents: z
    .array(
      z.strictObject({
        id: z.string().min(1),
        agent: z.string().min(1),
        source: z.enum(['engine', 'gateway']),
        class: z.enum(['interactive', 'batch']).nullable(),
        model: z.string().nullable(),
        backend: z.string().nullable(),
        state: z.enum(['generating', 'waiting', 'deflected', 'idle']),
        since: time.nullable(),
        tokensPerS: z.number().nonnegative().nullable(),
        tokens: z.int().nonnegative().nullable(),
        kv: z.enum(['device', 'host', 'file', 'none']).nullable(),
        bookedBytes: unknownBytes,
        deviceId: z.string().nullable(),
        lastSwitchMs: z.number().nonnegative().nullable(),
        queuePosition: z.int().positive().nullable(),
        weightsBytes: z.number().nonnegative().nullable(),
        loadProgress: z.number().min(0).max(1).nullable(),
        laneAgeMs: z.number().nonnegative().nullable(),
      }),
    )
    .default([]),
  asleep: z.strictObject({ since: time, until: time.nullable() }).nullable(),
  policy: z.strictObject({
    guards: z.enum(['on', 'observe', 'paused']),
    guardsPausedUntil: time.nullable(),
    floor: z.string(),
    cap: z.string(),
    maxBig: z.union([z.literal('fit'), z.number()]),
    race: z.enum(['class', 'resident', 'newcomer']),
    idleMs: z.number(),
    raceGraceMs: z.number(),
  }),
  backends: z.array(
    z.strictObject({
      name: z.string(),
      kind: z.string(),
      url: z.url(),
      status: z.enum(['up', 'down', 'unknown']),
      since: time.nullable(),
      error: z.string().nullable(),
      version: z.string().nullable(),
      guards: z.enum(['on', 'observe']),
      found: z.boolean(),
    }),
  ),
  notices: z.array(z.strictObject({ severity: z.enum(['info', 'warning', 'error']), text: z.string() })),
  restorable: z.array(z.string()),
  version: z.string(),
});

const eventSchema: z.ZodType<LandlordEvent> = z.strictObject({
  id: z.int(),
  at: time,
  kind: z.enum(EVENT_KINDS),
  reason: z.string().min(1),
  model: z.string().exactOptional(),
  backend: z.string().exactOptional(),
  session: z.string().exactOptional(),
  deviceId: z.string().exactOptional(),
  numbers: z.record(z.string(), z.number().nullable()),
});

const scenarioSchema = z.strictObject({ state: stateSchema, events: z.array(eventSchema) });

export interface Scenario {
  readonly state: LandlordState;
  readonly events: readonly LandlordEvent[];
}

export const stateNames: readonly string[] = readdirSync(folder)
  .filter((file) => file.endsWith('.json'))
  .map((file) => file.replace(/\.json$/, ''))
  .sort();

/** As it stands in the file, or with all its times moved so that it was taken at `nowMs`. */
export function loadState(name: string, nowMs?: number): Scenario {
  const text = readFileSync(`${folder}${name}.json`, 'utf8');
  const scenario = scenarioSchema.parse(JSON.parse(text));
  if (nowMs === undefined) return scenario;
  const shiftMs = nowMs - Date.parse(scenario.state.at);
  const moved = text.replaceAll(/"(\d{4}-\d\d-\d\dT[\d:.]+Z)"/g, (_whole, iso: string) =>
    JSON.stringify(new Date(Date.parse(iso) + shiftMs).toISOString()),
  );
  return scenarioSchema.parse(JSON.parse(moved));
}

/** The epoch ms a scenario was taken at. */
export function takenAt(scenario: Scenario): number {
  return Date.parse(scenario.state.at);
}

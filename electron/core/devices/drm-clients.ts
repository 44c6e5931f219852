import type { DrmClient } from './fdinfo.ts';

/** A client seen through one descriptor of one process. */
export interface ClientSighting {
  readonly pid: number;
  /** Clock ticks since boot; null where unreadable. */
  readonly startTimeTicks: number | null;
  readonly name: string;
  readonly client: DrmClient;
}

/** What one process holds on one card, each client counted once on the whole machine. */
export interface ClientMemory {
  readonly pid: number;
  readonly startTimeTicks: number | null;
  readonly name: string;
  readonly pciAddress: string | null;
  readonly driver: string;
  readonly vramBytes: number | null;
  readonly gttBytes: number | null;
}

/**
 * Counts each (card, client id) once, whatever the number of descriptors and processes that show
 * it. A descriptor inherited over fork shows the parent's figures under a child that never touched
 * the card, so a client seen under several processes belongs to the one that started first: the
 * opener is older than whoever inherited from it. Equal ages go to the lower pid.
 */
export function attributeClients(sightings: readonly ClientSighting[]): readonly ClientMemory[] {
  const owners = new Map<string, ClientSighting>();
  for (const sighting of sightings) {
    if (sighting.client.device !== 'gpu') continue;
    const key = clientKey(sighting);
    const owner = owners.get(key);
    if (owner === undefined || isOlder(sighting, owner)) owners.set(key, sighting);
  }
  const sums = new Map<string, ClientMemory>();
  for (const { pid, startTimeTicks, name, client } of owners.values()) {
    const key = `${pid} ${client.pciAddress ?? client.driver}`;
    const before = sums.get(key);
    sums.set(key, {
      pid,
      startTimeTicks,
      name,
      pciAddress: client.pciAddress,
      driver: client.driver,
      vramBytes: add(before?.vramBytes ?? null, client.vramBytes),
      gttBytes: add(before?.gttBytes ?? null, client.gttBytes),
    });
  }
  return [...sums.values()];
}

/** Without an id a client can only be told apart by its process. */
function clientKey({ pid, client }: ClientSighting): string {
  const card = client.pciAddress ?? client.driver;
  return client.clientId === null ? `${card} pid ${pid}` : `${card} id ${client.clientId}`;
}

function isOlder(a: ClientSighting, b: ClientSighting): boolean {
  if (a.startTimeTicks !== b.startTimeTicks) {
    return (a.startTimeTicks ?? Number.POSITIVE_INFINITY) < (b.startTimeTicks ?? Number.POSITIVE_INFINITY);
  }
  return a.pid < b.pid;
}

/** A part that is known counts even where another is not printed. */
function add(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : a + b;
}

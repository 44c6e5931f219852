/**
 * Questions to the desktop's D-Bus session bus, asked with the tools that come with systemd (`busctl`)
 * or GLib (`gdbus`), whichever is there. A library would be one more dependency in the process that
 * guards; this asks a few times a day. What neither tool can answer is unknown, never no.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';

/** null: unknown. */
export type Answer<T> = T | null;

export interface SessionBus {
  hasOwner(name: string): Promise<Answer<boolean>>;
  /** Running, or started by the bus when it is spoken to. */
  isAvailable(name: string): Promise<Answer<boolean>>;
  getBoolean(object: BusObject, property: string): Promise<Answer<boolean>>;
  getStrings(object: BusObject, property: string): Promise<Answer<readonly string[]>>;
  /** Whether the object has the property at all. */
  hasProperty(object: BusObject, property: string): Promise<Answer<boolean>>;
  /** The process behind a bus name. */
  pidOf(name: string): Promise<Answer<number>>;
  /** Calls back when the name's owner changes or it sends a signal. Returns its own undo. */
  watch(name: string, onChange: () => void): () => void;
}

export interface BusObject {
  readonly name: string;
  readonly path: string;
  readonly interface: string;
}

/** Exit status 0 and its output; null when the program is missing, failed or took too long. */
export type RunTool = (program: string, args: readonly string[]) => Promise<string | null>;

const LIMIT_MS = 3_000;
const BUS: BusObject = {
  name: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
};

export const runTool: RunTool = (program, args) =>
  new Promise((resolve) => {
    execFile(program, [...args], { timeout: LIMIT_MS, maxBuffer: 1024 * 1024 }, (error, stdout) =>
      resolve(error === null ? stdout : null),
    );
  });

/** `watchTool` begins to listen; it comes in so that tests need no bus. */
export function sessionBus(run: RunTool = runTool, watchTool: typeof watchName = watchName): SessionBus {
  const call = async (method: string, argument: string | null): Promise<unknown> =>
    (await viaBusctl(run, method, argument)) ?? (await viaGdbus(run, method, argument));
  const property = async (object: BusObject, name: string): Promise<unknown> => {
    const { name: service, path, interface: of } = object;
    const text = await run('busctl', ['--user', '--json=short', 'get-property', service, path, of, name]);
    if (text !== null) return busctlData(text);
    const got = await run('gdbus', [
      ...['call', '--session', '--dest', service, '--object-path', path],
      ...['--method', 'org.freedesktop.DBus.Properties.Get', of, name],
    ]);
    return got === null ? null : parseVariant(got);
  };
  const strings = (value: unknown): Answer<readonly string[]> =>
    Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : null;
  const hasOwner = async (name: string): Promise<Answer<boolean>> => {
    const value = await call('NameHasOwner', name);
    return typeof value === 'boolean' ? value : null;
  };
  return {
    hasOwner,
    async isAvailable(name) {
      const running = await hasOwner(name);
      if (running !== false) return running;
      return strings(await call('ListActivatableNames', null))?.includes(name) ?? null;
    },
    async getBoolean(object, name) {
      const value = await property(object, name);
      return typeof value === 'boolean' ? value : null;
    },
    getStrings: async (object, name) => strings(await property(object, name)),
    async hasProperty(object, name) {
      const value = await property(object, name);
      if (value !== null && value !== undefined) return true;
      // No answer from the object is no only where the bus itself answers.
      return (await hasOwner(object.name)) === null ? null : false;
    },
    async pidOf(name) {
      const value = await call('GetConnectionUnixProcessID', name);
      return typeof value === 'number' ? value : null;
    },
    watch: watchTool,
  };
}

async function viaBusctl(run: RunTool, method: string, argument: string | null): Promise<unknown> {
  const args = ['--user', '--json=short', 'call', BUS.name, BUS.path, BUS.interface, method];
  const text = await run('busctl', argument === null ? args : [...args, 's', argument]);
  if (text === null) return null;
  const data = busctlData(text);
  // A reply is a list of its arguments; each of these methods answers with one.
  return Array.isArray(data) ? data[0] : null;
}

async function viaGdbus(run: RunTool, method: string, argument: string | null): Promise<unknown> {
  const args = ['call', '--session', '--dest', BUS.name, '--object-path', BUS.path];
  const named = [...args, '--method', `${BUS.interface}.${method}`];
  const text = await run('gdbus', argument === null ? named : [...named, argument]);
  return text === null ? null : parseVariant(text);
}

/** `{"type":"b","data":true}` → true; null for what is none. */
export function busctlData(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && 'data' in value ? value.data : null;
  } catch {
    return null;
  }
}

/**
 * The one value in a GVariant text as `gdbus call` prints it: `(true,)`, `(<false>,)`, `(uint32 1234,)`,
 * `(['a', 'b'],)`, `(<@as []>,)`, `(<'Active'>,)`. null for anything else.
 */
export function parseVariant(text: string): unknown {
  const tuple = /^\((.*),\)$/s.exec(text.trim())?.[1];
  if (tuple === undefined) return null;
  const inner = (/^<(.*)>$/s.exec(tuple)?.[1] ?? tuple).replace(/^@\S+ /, '');
  if (inner === 'true' || inner === 'false') return inner === 'true';
  const number = /^(?:u?int(?:16|32|64) )?(-?\d+)$/.exec(inner)?.[1];
  if (number !== undefined) return Number(number);
  if (inner.startsWith('[') && inner.endsWith(']')) return quoted(inner);
  if (/^'(?:[^'\\]|\\.)*'$/.test(inner)) return quoted(inner)[0];
  // A structure or a picture: it is there, and that is all that is asked of it.
  return inner === '' ? null : { text: inner };
}

function quoted(text: string): readonly string[] {
  return [...text.matchAll(/'((?:[^'\\]|\\.)*)'/g)].map((match) => (match[1] ?? '').replace(/\\(.)/g, '$1'));
}

/** After no listener could stay, for instance because the bus was restarted. */
const AGAIN_MS = 30_000;
/** A program that ends sooner has not listened: it is not there, or not able. */
const LEAST_LISTENED_MS = 1_000;

/**
 * Listens as long as it is not undone: a line of output is a signal of the name, or a change of its
 * owner. The kernel is told to end the listener with us (`setpriv`), where that is there.
 */
export function watchName(name: string, onChange: () => void): () => void {
  const glib = ['gdbus', 'monitor', '--session', '--dest', name];
  const owner = `type='signal',interface='${BUS.interface}',member='NameOwnerChanged',arg0='${name}'`;
  const systemd = ['busctl', '--user', '--json=short', 'monitor'];
  const listeners: readonly (readonly string[])[] = [
    ['setpriv', '--pdeathsig', 'TERM', '--', ...glib],
    glib,
    [...systemd, '--match', `type='signal',sender='${name}'`, '--match', owner],
  ];
  let stopped = false;
  let end = (): void => {};
  const listen = (at: number): void => {
    if (stopped) return;
    const [program, ...args] = listeners[at] ?? [];
    if (program === undefined) {
      const timer = setTimeout(() => listen(0), AGAIN_MS);
      timer.unref();
      end = () => clearTimeout(timer);
      return;
    }
    const beganAtMs = performance.now();
    const child: ChildProcess = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    end = () => child.kill('SIGTERM');
    child.stdout?.on('data', onChange);
    // A program that is missing closes too; one that finds no descriptor left has nothing to close.
    child.on('error', () => {
      if (child.stdout == null) listen(at + 1);
    });
    child.on('close', () => {
      const listened = performance.now() - beganAtMs > LEAST_LISTENED_MS;
      if (listened && !stopped) onChange();
      listen(listened ? 0 : at + 1);
    });
    child.unref();
  };
  listen(0);
  return () => {
    stopped = true;
    end();
  };
}

/**
 * A session bus of our own (`dbus-daemon`) and a peer on it that answers for properties: enough of D-Bus
 * to stand for a panel's StatusNotifierWatcher and an icon (D-Bus Specification 0.43: messages,
 * marshaling, the EXTERNAL mechanism).
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { connect, type Socket } from 'node:net';

export const hasBusTools = ['dbus-daemon', 'busctl', 'gdbus'].every(
  (program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined,
);

export interface PrivateBus {
  readonly address: string;
  stop(): void;
}

export async function startBus(): Promise<PrivateBus> {
  const child: ChildProcess = spawn(
    'dbus-daemon',
    ['--session', '--nofork', '--nopidfile', '--print-address=1'],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (text: Buffer) => resolve(text.toString().trim()));
    child.once('close', () => reject(new Error('dbus-daemon ended')));
  });
  return { address, stop: () => void child.kill('SIGTERM') };
}

export type BusValue = boolean | string | readonly string[];

const METHOD_CALL = 1;
const METHOD_RETURN = 2;
const ERROR = 3;
const SIGNAL = 4;
/** Header fields, and the types their values have. */
const FIELD = {
  path: 1,
  interface: 2,
  member: 3,
  errorName: 4,
  replySerial: 5,
  destination: 6,
  signature: 8,
} as const;

interface Message {
  readonly type: number;
  readonly serial: number;
  readonly sender: string | null;
  readonly signature: string;
  readonly body: Buffer;
}

/** Writes values with D-Bus's alignment, little-endian. */
class Writer {
  #bytes: number[] = [];
  get buffer(): Buffer {
    return Buffer.from(this.#bytes);
  }
  get length(): number {
    return this.#bytes.length;
  }
  align(to: number): this {
    while (this.#bytes.length % to !== 0) this.#bytes.push(0);
    return this;
  }
  byte(value: number): this {
    this.#bytes.push(value);
    return this;
  }
  uint32(value: number): this {
    this.align(4);
    for (let shift = 0; shift < 32; shift += 8) this.#bytes.push((value >>> shift) & 0xff);
    return this;
  }
  string(text: string): this {
    const utf8 = Buffer.from(text);
    this.uint32(utf8.length);
    this.#bytes.push(...utf8, 0);
    return this;
  }
  signature(text: string): this {
    this.#bytes.push(text.length, ...Buffer.from(text), 0);
    return this;
  }
  raw(bytes: Buffer): this {
    this.#bytes.push(...bytes);
    return this;
  }
  variant(value: BusValue): this {
    if (typeof value === 'boolean') return this.signature('b').uint32(value ? 1 : 0);
    if (typeof value === 'string') return this.signature('s').string(value);
    this.signature('as').align(4);
    // The length counts from the first string on; strings align to 4, and so does the length itself.
    const inner = new Writer();
    for (const one of value) inner.string(one);
    return this.uint32(inner.length).raw(inner.buffer);
  }
}

function marshal(
  type: number,
  serial: number,
  fields: readonly (readonly [number, string, string | number])[],
  body: Buffer,
): Buffer {
  const header = new Writer().byte(0x6c).byte(type).byte(0).byte(1).uint32(body.length).uint32(serial);
  const list = new Writer();
  // Fields are structures, aligned to 8; the array begins at byte 16, so that both count alike.
  for (const [code, kind, value] of fields) {
    list.align(8).byte(code).signature(kind);
    if (kind === 'g') list.signature(String(value));
    else if (kind === 'u') list.uint32(Number(value));
    else list.string(String(value));
  }
  return header.uint32(list.length).raw(list.buffer).align(8).raw(body).buffer;
}

function unmarshal(bytes: Buffer): { readonly message: Message; readonly size: number } | null {
  if (bytes.length < 16) return null;
  const bodyLength = bytes.readUInt32LE(4);
  const fieldsLength = bytes.readUInt32LE(12);
  const bodyAt = Math.ceil((16 + fieldsLength) / 8) * 8;
  if (bytes.length < bodyAt + bodyLength) return null;
  let sender: string | null = null;
  let signature = '';
  for (let at = 16; at < 16 + fieldsLength; ) {
    at = Math.ceil(at / 8) * 8;
    const code = bytes[at] ?? 0;
    const kind = String.fromCharCode(bytes[at + 2] ?? 0);
    at += 4;
    if (kind === 'g') {
      const length = bytes[at] ?? 0;
      signature = bytes.toString('utf8', at + 1, at + 1 + length);
      at += length + 2;
    } else if (kind === 'u') at = Math.ceil(at / 4) * 4 + 4;
    else {
      at = Math.ceil(at / 4) * 4;
      const length = bytes.readUInt32LE(at);
      if (code === 7) sender = bytes.toString('utf8', at + 4, at + 4 + length);
      at += length + 5;
    }
  }
  const body = bytes.subarray(bodyAt, bodyAt + bodyLength);
  const message = { type: bytes[1] ?? 0, serial: bytes.readUInt32LE(8), sender, signature, body };
  return { message, size: bodyAt + bodyLength };
}

/** The strings at the begin of a body. */
function stringsOf(message: Message): readonly string[] {
  const found: string[] = [];
  let at = 0;
  for (const kind of message.signature) {
    if (kind !== 's') break;
    at = Math.ceil(at / 4) * 4;
    const length = message.body.readUInt32LE(at);
    found.push(message.body.toString('utf8', at + 4, at + 4 + length));
    at += length + 5;
  }
  return found;
}

/** A connection that owns a name and answers `Properties.Get` from `properties`, on any object. */
export class BusPeer {
  readonly properties = new Map<string, BusValue>();
  uniqueName = '';
  readonly #socket: Socket;
  #serial = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async join(address: string, name: string): Promise<BusPeer> {
    const path = /unix:(?:path|abstract)=([^,]+)/.exec(address)?.[1] ?? '';
    const socket = connect({ path: address.includes('abstract=') ? `\0${path}` : path });
    const peer = new BusPeer(socket);
    const uid = Buffer.from(String(process.getuid?.() ?? 0)).toString('hex');
    socket.write(`\0AUTH EXTERNAL ${uid}\r\n`);
    await new Promise<void>((resolve) => socket.once('data', () => resolve()));
    socket.write('BEGIN\r\n');
    const named = peer.#listen();
    peer.#call('Hello', '', Buffer.alloc(0));
    const flags = new Writer().string(name).uint32(4).buffer;
    peer.#call('RequestName', 'su', flags);
    await named;
    return peer;
  }

  /** A signal without arguments, from the watcher's object. */
  signal(member: string): void {
    this.#serial += 1;
    const fields = [
      [FIELD.path, 'o', '/StatusNotifierWatcher'],
      [FIELD.interface, 's', 'org.kde.StatusNotifierWatcher'],
      [FIELD.member, 's', member],
    ] as const;
    this.#socket.write(marshal(SIGNAL, this.#serial, fields, Buffer.alloc(0)));
  }

  leave(): void {
    this.#socket.destroy();
  }

  /** Resolves once both calls are answered. */
  #listen(): Promise<void> {
    let rest = Buffer.alloc(0);
    let answers = 0;
    return new Promise((resolve) => {
      this.#socket.on('data', (chunk) => {
        rest = Buffer.concat([rest, Buffer.from(chunk)]);
        for (let next = unmarshal(rest); next !== null; next = unmarshal(rest)) {
          rest = rest.subarray(next.size);
          const { message } = next;
          if (message.type === METHOD_CALL) this.#answer(message);
          if (message.type !== METHOD_RETURN) continue;
          answers += 1;
          if (answers === 1) this.uniqueName = stringsOf(message)[0] ?? '';
          if (answers === 2) resolve();
        }
      });
    });
  }

  #call(member: string, signature: string, body: Buffer): void {
    this.#serial += 1;
    const fields = [
      [FIELD.path, 'o', '/org/freedesktop/DBus'],
      [FIELD.interface, 's', 'org.freedesktop.DBus'],
      [FIELD.member, 's', member],
      [FIELD.destination, 's', 'org.freedesktop.DBus'],
      ...(signature === '' ? [] : [[FIELD.signature, 'g', signature] as const]),
    ] as const;
    this.#socket.write(marshal(METHOD_CALL, this.#serial, fields, body));
  }

  #answer(call: Message): void {
    this.#serial += 1;
    const [, property = ''] = stringsOf(call);
    const value = this.properties.get(property);
    const to = [
      [FIELD.replySerial, 'u', call.serial],
      [FIELD.destination, 's', call.sender ?? ''],
    ] as const;
    const answer =
      value === undefined
        ? marshal(
            ERROR,
            this.#serial,
            [...to, [FIELD.errorName, 's', 'org.freedesktop.DBus.Error.UnknownProperty']],
            Buffer.alloc(0),
          )
        : marshal(
            METHOD_RETURN,
            this.#serial,
            [...to, [FIELD.signature, 'g', 'v']],
            new Writer().variant(value).buffer,
          );
    this.#socket.write(answer);
  }
}

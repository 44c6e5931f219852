import type { Socket } from 'node:net';
import { peersOf } from '../gate/local-clients.ts';

interface Asked {
  readonly socket: Socket;
  readonly resolve: (pid: number | null) => void;
}

let asked: Asked[] = [];
/** No walk begins before this (performance.now): as long as one took, others are served. */
let restsUntilMs = 0;

/** The process at the other end; all that are asked for while one walk rests are found in the next. */
export function peerOf(socket: Socket): Promise<number | null> {
  return new Promise((resolve) => {
    if (asked.length === 0) {
      const restMs = restsUntilMs - performance.now();
      if (restMs > 0) setTimeout(findAll, restMs);
      else setImmediate(findAll);
    }
    asked.push({ socket, resolve });
  });
}

function findAll(): void {
  const all = asked;
  asked = [];
  const fromMs = performance.now();
  const found = peersOf(
    all.map(({ socket }) => ({ port: socket.localPort ?? 0, peerPort: socket.remotePort ?? 0 })),
  );
  const nowMs = performance.now();
  restsUntilMs = nowMs + (nowMs - fromMs);
  for (const [index, one] of all.entries()) one.resolve(found[index] ?? null);
}

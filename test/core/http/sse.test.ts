import http from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { openSseStream, type SseStream, sseComment, sseFrame } from '../../../electron/core/http/sse.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A stream to a reader that never reads. */
function openToStoppedReader(): Promise<{ stream: SseStream; response: http.ServerResponse }> {
  return new Promise((resolve) => {
    const server = http.createServer((_request, response) => {
      const stream = openSseStream(response, {}, { keepAliveMs: 60_000, blockedLimitMs: 60_000 });
      resolve({ stream, response });
    });
    closers.push(() => {
      server.closeAllConnections();
      server.close();
    });
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = address !== null && typeof address === 'object' ? address.port : 0;
      const client = http.get({ host: '127.0.0.1', port }, (answer) => answer.pause());
      client.on('error', () => undefined);
    });
  });
}

describe('frames', () => {
  it('are as the HTML standard has them', () => {
    expect(sseFrame({ event: 'state', id: 4, data: '{}' })).toBe('event: state\nid: 4\ndata: {}\n\n');
    expect(sseFrame({ data: '1' })).toBe('data: 1\n\n');
  });

  it('a comment stays one line, whatever is in it', () => {
    expect(sseComment('a\r\ndata: forged')).toBe(': a data: forged\n\n');
  });
});

describe('a reader that does not read', () => {
  it('costs one frame over the socket buffer and no more', async () => {
    const { stream, response } = await openToStoppedReader();
    const frame = sseFrame({ data: 'x'.repeat(50_000) });
    let taken = 0;
    while (taken < 10_000 && stream.send(frame)) taken += 1;
    expect(taken).toBeGreaterThan(0);
    expect(stream.state).toBe('blocked');
    const heldBytes = response.writableLength;
    for (let count = 0; count < 1000; count += 1) expect(stream.send(frame)).toBe(false);
    expect(response.writableLength).toBe(heldBytes);
  });

  it('is let go when the stream is closed, and who waits for it is told', async () => {
    const { stream, response } = await openToStoppedReader();
    const frame = sseFrame({ data: 'x'.repeat(50_000) });
    for (let count = 0; count < 10_000 && stream.send(frame); count += 1);
    const opened = stream.whenOpen();
    let closed = 0;
    stream.onClose(() => {
      closed += 1;
    });
    stream.close();
    stream.close();
    expect(await opened).toBe(false);
    expect(closed).toBe(1);
    expect(response.destroyed).toBe(true);
    expect(await stream.whenOpen()).toBe(false);
  });
});

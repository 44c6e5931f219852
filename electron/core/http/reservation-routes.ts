import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { peersOf } from '../gate/local-clients.ts';
import type { HostApi, ReservationEnd } from '../runtime-api.ts';
import { reservationWish } from './bodies.ts';
import { refusal, refusalOf } from './errors.ts';
import { SAFE_HEADERS } from './headers.ts';
import { refuse } from './routes.ts';

/** Each holds a connection of this server. */
const MOST = 64;
const KEEP_ALIVE_MS = 15_000;

/**
 * `POST /api/reservations`: memory for a job, held by the connection of this request. The answer's first
 * line is the reservation as JSON, an empty line follows now and then, and a last one `{"over": …}` says
 * who else ended it. The kernel closes the connection of a job that dies, and with it the booking.
 */
export function addReservationRoutes(app: FastifyInstance, api: HostApi, stopping: AbortSignal): void {
  let open = 0;

  app.post('/api/reservations', async (request, reply) => {
    const wish = reservationWish(request.body);
    if (!wish.ok) return refuse(reply, refusalOf(wish.error));
    if (open >= MOST) {
      const message = `${MOST} reservations are held or waited for already; end one of them first.`;
      return refuse(reply, refusal(503, 'too_many_streams', message));
    }
    const gone = new AbortController();
    open += 1;
    reply.raw.once('close', () => {
      open -= 1;
      gone.abort();
    });
    const reserved = await api.reserve({ ...wish.value, pid: peerOf(request) }, gone.signal);
    if (!reserved.ok) return refuse(reply, refusalOf(reserved.error));
    const { reservation, onOver, release } = reserved.value;
    reply.hijack();
    const raw = reply.raw;
    const beat = setInterval(() => raw.write('\n'), KEEP_ALIVE_MS);
    onOver((how) => {
      clearInterval(beat);
      if (!gone.signal.aborted) raw.end(`${JSON.stringify({ over: SENTENCE[how] })}\n`);
    });
    gone.signal.addEventListener('abort', () => release(stopping.aborted ? 'stopping' : 'closed'), {
      once: true,
    });
    if (gone.signal.aborted) {
      release();
      return reply;
    }
    raw.writeHead(200, {
      ...SAFE_HEADERS,
      'content-type': 'application/x-ndjson',
      'cache-control': 'no-store',
    });
    raw.write(`${JSON.stringify(reservation)}\n`);
    return reply;
  });

  app.get('/api/reservations', async () => api.reservations());

  app.delete<{ Params: { id: string } }>('/api/reservations/:id', (request, reply): FastifyReply => {
    const { id } = request.params;
    if (api.endReservation(id)) return reply.send({ message: `The reservation ${id} has ended.` });
    const message = `There is no reservation ${JSON.stringify(id)}: GET /api/reservations lists them.`;
    return refuse(reply, refusal(404, 'not_found', message));
  });
}

const SENTENCE: Readonly<Record<ReservationEnd, string>> = {
  closed: 'It was given back.',
  ended: 'Somebody else ended it.',
  stopping: 'VRAM Landlord is being stopped.',
};

/** The process at the other end; null: not of this machine's processes that we can see. */
function peerOf(request: FastifyRequest): number | null {
  const { localPort, remotePort } = request.socket;
  if (localPort === undefined || remotePort === undefined) return null;
  return peersOf([{ port: localPort, peerPort: remotePort }])[0] ?? null;
}

import type { FastifyInstance } from 'fastify';
import { fail } from '../../../shared/errors.ts';
import type { RequestLog } from '../events/request-log.ts';
import { tokensPerS } from '../events/request-record.ts';
import { refusalOf } from '../http/errors.ts';

/**
 * `GET /api/requests?since=…&model=…&agent=…&limit=…`: the requests that went through the gateway,
 * oldest first, without a word of what was said in them.
 */
export function addHistoryRoute(app: FastifyInstance, ask: RequestLog['query']): void {
  app.get('/api/requests', async (request, reply) => {
    const query = new URL(request.url, 'http://localhost').searchParams;
    const since = query.get('since');
    const sinceMs = since === null ? undefined : Date.parse(since);
    const limit = Number(query.get('limit') ?? 200);
    if (!Number.isInteger(limit) || limit < 1 || Number.isNaN(sinceMs)) {
      const message = '`since` is an ISO 8601 time and `limit` a number from 1 to 5000.';
      const { status, body } = refusalOf(fail('bad_input', message).error);
      return reply.code(status).send(body);
    }
    const model = query.get('model');
    const agent = query.get('agent');
    const records = await ask({
      limit,
      ...(sinceMs === undefined ? {} : { sinceMs }),
      ...(model === null ? {} : { model }),
      ...(agent === null ? {} : { agent }),
    });
    if (!records.ok) {
      const { status, body } = refusalOf(records.error);
      return reply.code(status).send(body);
    }
    return records.value.map(({ atMs, ...record }) => ({
      at: new Date(atMs).toISOString(),
      ...record,
      tokensPerS: tokensPerS({ atMs, ...record }),
    }));
  });
}

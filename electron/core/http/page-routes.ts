import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RuntimeApi } from '../runtime-api.ts';
import type { Gatekeeper } from './auth.ts';
import { refusal } from './errors.ts';
import { contentSecurityPolicy } from './headers.ts';
import { lockedPage, PLAIN_STYLE_HASH, plainPage } from './plain-page.ts';
import { refuse } from './routes.ts';
import { readPageFile } from './static-page.ts';

export interface PageOptions {
  readonly api: RuntimeApi;
  readonly pageDir: string | null;
  readonly gatekeeper: Gatekeeper;
}

/** These answer who is not let in by themselves, in words for a browser. */
export const PAGE_ROUTES: readonly string[] = ['/', '/assets/*', '/:file'];

/**
 * The window's page. A right `?key=` is traded for a cookie and leaves the address bar; without a
 * cookie neither the page nor its files are served.
 */
export function addPage(app: FastifyInstance, options: PageOptions): void {
  app.get('/', async (request, reply) => {
    const key = new URL(request.url, 'http://localhost').searchParams.get('key');
    const cookie = key === null ? null : options.gatekeeper.exchange(key);
    if (cookie !== null) {
      return reply.header('set-cookie', cookie).header('cache-control', 'no-store').redirect('/', 303);
    }
    if (!maySee(request, options)) return sendHtml(reply.code(401), lockedPage());
    // A used key in a bookmark: the cookie is enough, and the key leaves the address bar again.
    if (key !== null) return reply.header('cache-control', 'no-store').redirect('/', 303);
    return (await sendFile(reply, options, '/')) ?? sendPlain(reply, options);
  });
  for (const path of PAGE_ROUTES.slice(1)) {
    app.get(path, async (request, reply) => {
      const urlPath = request.url.split('?', 1)[0] ?? '/';
      if (!maySee(request, options)) return sendHtml(reply.code(401), lockedPage());
      const sent = await sendFile(reply, options, urlPath);
      return sent ?? refuse(reply, refusal(404, 'not_found', `There is no ${urlPath} here.`));
    });
  }
}

function maySee(request: FastifyRequest, options: PageOptions): boolean {
  const { authorization, cookie } = request.headers;
  return options.gatekeeper.mayUseApi({ authorization, cookie });
}

async function sendFile(
  reply: FastifyReply,
  options: PageOptions,
  urlPath: string,
): Promise<FastifyReply | null> {
  const file = options.pageDir === null ? null : await readPageFile(options.pageDir, urlPath);
  if (file === null) return null;
  return reply
    .header('content-security-policy', contentSecurityPolicy(null))
    .header('cache-control', file.cacheControl)
    .type(file.contentType)
    .send(file.content);
}

async function sendPlain(reply: FastifyReply, options: PageOptions): Promise<FastifyReply> {
  const events = await options.api.events({ limit: 20 });
  return sendHtml(reply, plainPage(options.api.state(), events.ok ? events.value : []));
}

function sendHtml(reply: FastifyReply, html: string): FastifyReply {
  return reply
    .header('content-security-policy', contentSecurityPolicy(PLAIN_STYLE_HASH))
    .header('cache-control', 'no-store')
    .type('text/html; charset=utf-8')
    .send(html);
}

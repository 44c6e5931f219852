import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Gateway } from './gateway.ts';
import { sendRefusal } from './refusals.ts';

/**
 * `/v1` on the server's own port. Bodies are not read here: they go through as they come, with the
 * pace of who takes them.
 */
export function addGatewayRoutes(app: FastifyInstance, gateway: Gateway): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    const pass = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
      reply.hijack();
      void gateway.handle(request.raw, reply.raw, null);
      return reply;
    };
    scope.get('/v1/models', { exposeHeadRoute: true }, async () => gateway.models());
    scope.get('/v1/models/*', (request, reply) => {
      const name = wildcardOf(request);
      const model = gateway.model(name);
      if (model !== null) return reply.send(model);
      reply.hijack();
      const message = `There is no model ${name}. GET /v1/models lists them.`;
      sendRefusal(
        reply.raw,
        { status: 404, code: 'unknown_model', message, numbers: {}, retryAfterS: null },
        'openai',
        {},
      );
      return reply;
    });
    scope.all('/v1', pass);
    scope.all('/v1/*', pass);
  });
}

function wildcardOf(request: FastifyRequest): string {
  const { params } = request;
  const rest = typeof params === 'object' && params !== null && '*' in params ? params['*'] : '';
  return typeof rest === 'string' ? rest : '';
}

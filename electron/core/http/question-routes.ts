import type { FastifyInstance } from 'fastify';
import { QUESTION_NAMES, QUESTIONS, type QuestionName, readArgs } from '../../../shared/ipc-schema.ts';
import type { RuntimeApi } from '../runtime-api.ts';
import { refusalOf } from './errors.ts';
import { refuse } from './routes.ts';

/**
 * `POST /api/plan`, `/api/history`, `/api/settings`, …: what shared/ipc-schema.ts declares as a question,
 * with its arguments as one JSON object.
 */
export function addQuestionRoutes(app: FastifyInstance, api: Pick<RuntimeApi, 'ask'>): void {
  for (const name of QUESTION_NAMES) addRoute(app, api, name);
}

function addRoute<Name extends QuestionName>(
  app: FastifyInstance,
  api: Pick<RuntimeApi, 'ask'>,
  name: Name,
): void {
  app.post(`/api/${QUESTIONS[name]}`, async (request, reply) => {
    const args = readArgs(name, request.body ?? {});
    const answer = args.ok ? await api.ask(name, args.value) : args;
    return answer.ok ? reply.send(answer.value) : refuse(reply, refusalOf(answer.error));
  });
}

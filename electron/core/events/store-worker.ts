import { parentPort } from 'node:worker_threads';
import { LandlordDatabase } from './database.ts';
import { failureOf, StoreProblem } from './sqlite-failure.ts';
import type {
  AnswerMessage,
  RequestMessage,
  StoreAnswers,
  StoreRequest,
  StoreResult,
} from './store-protocol.ts';

/** Owns the database, so that a slow disk blocks this thread and not the one that guards. */
let database: LandlordDatabase | null = null;

function answer(request: StoreRequest): StoreAnswers[keyof StoreAnswers] {
  if (request.type === 'open') {
    closeDatabase();
    const { database: fresh, opened } = LandlordDatabase.open(
      request.options,
      request.nowMs,
      request.damaged,
    );
    database = fresh;
    return opened;
  }
  if (request.type === 'close') {
    closeDatabase();
    return null;
  }
  if (database === null) throw new StoreProblem('its database is not open');
  switch (request.type) {
    case 'append':
      return database.append(request.events);
    case 'query':
      return database.query(request.query);
    case 'addSamples':
      database.addSamples(request.samples);
      return null;
    case 'querySamples':
      return database.querySamples(request.query);
    case 'addRequests':
      database.addRequests(request.records);
      return null;
    case 'queryRequests':
      return database.queryRequests(request.query);
    case 'setFacts':
      database.setFacts(request.facts);
      return null;
    case 'prune':
      return database.prune(request.nowMs);
  }
}

function closeDatabase(): void {
  const closing = database;
  database = null;
  try {
    closing?.[Symbol.dispose]();
  } catch {
    // A full disk can't checkpoint; the log is taken up at the next opening.
  }
}

parentPort?.on('message', (message: RequestMessage) => {
  let result: StoreResult<StoreAnswers[keyof StoreAnswers]>;
  try {
    result = { ok: true, value: answer(message.request) };
  } catch (error) {
    result = { ok: false, error: failureOf(error) };
  }
  const reply: AnswerMessage = { sequence: message.sequence, result };
  parentPort?.postMessage(reply);
});

import { memo, useState } from 'react';
import { formatDuration } from '../../shared/format.ts';
import { strings } from '../strings.ts';
import { shortName } from '../view/figures.ts';
import { useModel, useReplica } from './context.ts';

const words = strings.start;

type Try =
  | { readonly kind: 'idle' }
  | { readonly kind: 'running' }
  | { readonly kind: 'done'; readonly model: string; readonly tookMs: number }
  | { readonly kind: 'failed'; readonly why: string };

/** One turn the whole way: the model is loaded if it fits, and answers a few words. */
export const TestTurn = memo(function TestTurn() {
  const { ask } = useModel();
  const models = useReplica(({ state }) =>
    (state?.models ?? []).map(({ id, status }) => ({ id, loaded: status === 'loaded' })),
  );
  const first = models.find((model) => model.loaded) ?? models[0];
  const [chosen, setChosen] = useState<string | null>(null);
  const [tried, setTried] = useState<Try>({ kind: 'idle' });
  const model = chosen ?? first?.id ?? null;
  const run = (id: string): void => {
    setTried({ kind: 'running' });
    const startedAtMs = performance.now();
    void ask('testTurn', { model: id }).then((answer) =>
      setTried(
        answer.ok
          ? { kind: 'done', model: shortName(id), tookMs: performance.now() - startedAtMs }
          : { kind: 'failed', why: answer.error.message },
      ),
    );
  };
  return (
    <>
      <h3 id="test-title">{words.test}</h3>
      <p className="facts">{words.testHint}</p>
      {model === null ? (
        <p>{words.testNone}</p>
      ) : (
        <div className="dial">
          <select
            aria-label={words.testModel}
            value={model}
            onChange={(event) => setChosen(event.target.value)}
          >
            {models.map(({ id }) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
          </select>
          <button
            type="button"
            aria-busy={tried.kind === 'running'}
            disabled={tried.kind === 'running'}
            onClick={() => run(model)}
          >
            {words.testRun}
          </button>
        </div>
      )}
      <p role="status">
        {tried.kind === 'running' && words.testRunning}
        {tried.kind === 'done' && words.testDone(tried.model, formatDuration(tried.tookMs))}
        {tried.kind === 'failed' && words.testFailed(tried.why)}
      </p>
    </>
  );
});

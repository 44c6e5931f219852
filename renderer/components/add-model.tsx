import { memo, useId, useState } from 'react';
import type { Result } from '../../shared/errors.ts';
import type { Done } from '../../shared/ipc-schema.ts';
import { strings } from '../strings.ts';
import { useModel } from './context.ts';

const words = strings.start;

type Said = { readonly kind: 'done' | 'failed'; readonly text: string } | null;

/** With no model server, the built-in engine answers: it needs the path of one GGUF file. */
export const AddModel = memo(function AddModel({ added }: { added?: () => void }) {
  const { ask } = useModel();
  const id = useId();
  const [file, setFile] = useState('');
  const [busy, setBusy] = useState(false);
  const [said, setSaid] = useState<Said>(null);
  const show = (answer: Result<Done>): void => {
    setBusy(false);
    setSaid(
      answer.ok
        ? { kind: 'done', text: answer.value.message }
        : { kind: 'failed', text: answer.error.message },
    );
    if (!answer.ok) return;
    setFile('');
    added?.();
  };
  return (
    <form
      className="add-model"
      onSubmit={(event) => {
        event.preventDefault();
        if (busy || file.trim() === '') return;
        setBusy(true);
        void ask('addModel', { name: null, file }).then(show);
      }}
    >
      <label htmlFor={id}>{words.addModel}</label>
      <p className="facts">{words.addModelHint}</p>
      <div className="dial">
        <input
          id={id}
          type="text"
          spellCheck={false}
          autoComplete="off"
          placeholder={words.addModelExample}
          value={file}
          onChange={(event) => setFile(event.target.value)}
        />
        <button type="submit" aria-busy={busy} disabled={busy}>
          {words.addModelRun}
        </button>
      </div>
      {said !== null && (
        <p
          className={said.kind === 'done' ? 'saved' : 'refusal'}
          role={said.kind === 'done' ? 'status' : 'alert'}
        >
          {said.text}
        </p>
      )}
    </form>
  );
});

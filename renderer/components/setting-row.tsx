import { memo, useEffect, useId, useState } from 'react';
import type { SettingEntry } from '../../shared/questions.ts';
import { strings } from '../strings.ts';
import { useModel } from './context.ts';

const words = strings.settings;
/** A check asks the same reader as the file itself; it waits for a pause in the typing. */
const REST_MS = 350;

export type SaveSetting = (key: string, yaml: string | null) => Promise<string | null>;

/** One key: what it means, what stands for it, and whether what is typed would be taken. */
export const SettingRow = memo(function SettingRow({
  entry,
  save,
}: {
  entry: SettingEntry;
  save: SaveSetting;
}) {
  const stands = entry.yaml ?? '';
  const [typed, setTyped] = useState(stands);
  const [busy, setBusy] = useState(false);
  const [saved, setSaved] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const problem = useProblem(entry.key, typed, typed !== stands);
  const id = useId();
  useEffect(() => setTyped(stands), [stands]);
  const changed = typed !== stands;
  const write = (yaml: string | null): void => {
    setBusy(true);
    setSaved(false);
    setRefusal(null);
    void save(entry.key, yaml).then((why) => {
      setBusy(false);
      setSaved(why === null);
      setRefusal(why);
    });
  };
  const wrong = refusal ?? problem;
  return (
    <li className="setting" data-setting={entry.key}>
      <div className="meaning">
        <label htmlFor={id}>
          <strong>{entry.key}</strong>
        </label>
        <p>{entry.meaning}</p>
        <p className="facts">
          {entry.defaultText !== null && <span>{words.defaultIs(entry.defaultText)}</span>}
          {entry.unit !== null && <span>{words.unit(entry.unit)}</span>}
        </p>
        <Inside entry={entry} />
      </div>
      <form
        className="value"
        onSubmit={(event) => {
          event.preventDefault();
          if (changed && problem === null) write(typed.trim() === '' ? null : typed);
        }}
      >
        <ValueField entry={entry} id={id} typed={typed} wrong={wrong !== null} type={setTyped} />
        <p id={`${id}-problem`} className="problem" role={wrong === null ? undefined : 'alert'}>
          {wrong}
        </p>
        <div className="buttons">
          {changed && (
            <>
              <button
                type="submit"
                aria-label={words.saveName(entry.key)}
                aria-busy={busy}
                disabled={problem !== null}
              >
                {words.save}
              </button>
              <button
                type="button"
                onClick={() => {
                  setTyped(stands);
                  setRefusal(null);
                }}
              >
                {words.undo}
              </button>
            </>
          )}
          {!changed && entry.yaml !== null && (
            <button
              type="button"
              className="small"
              aria-label={words.resetName(entry.key)}
              aria-busy={busy}
              onClick={() => write(null)}
            >
              {words.reset}
            </button>
          )}
          {saved && !changed && (
            <span className="saved" role="status">
              {words.saved}
            </span>
          )}
        </div>
      </form>
    </li>
  );
});

function ValueField({
  entry,
  id,
  typed,
  wrong,
  type,
}: {
  entry: SettingEntry;
  id: string;
  typed: string;
  wrong: boolean;
  type: (text: string) => void;
}) {
  const common = { id, 'aria-describedby': `${id}-problem`, 'aria-invalid': wrong };
  if (entry.kind === 'choice')
    return (
      <select {...common} value={typed.trim()} onChange={(event) => type(event.target.value)}>
        <option value="">
          {entry.defaultText === null ? words.asDefault : words.defaultIs(entry.defaultText)}
        </option>
        {entry.choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    );
  const hint = entry.defaultText ?? words.asDefault;
  if (entry.kind === 'list' || entry.kind === 'mapping' || typed.includes('\n'))
    return (
      <textarea
        {...common}
        rows={Math.min(10, Math.max(1, typed.split('\n').length))}
        spellCheck={false}
        placeholder={hint}
        value={typed}
        onChange={(event) => type(event.target.value)}
      />
    );
  return (
    <input
      {...common}
      type="text"
      spellCheck={false}
      autoComplete="off"
      placeholder={hint}
      value={typed}
      onChange={(event) => type(event.target.value)}
    />
  );
}

function Inside({ entry }: { entry: SettingEntry }) {
  if (entry.parts.length === 0) return null;
  return (
    <details>
      <summary>{words.inside}</summary>
      <dl className="parts">
        {entry.parts.map((part) => (
          <div key={part.key}>
            <dt>{part.key}</dt>
            <dd>
              {[
                part.meaning,
                part.choices.length === 0 ? '' : words.choices(part.choices.join(', ')),
                part.defaultText === null ? '' : words.defaultIs(part.defaultText),
              ]
                .filter((text) => text !== '')
                .join(' · ')}
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** Why what is typed would not be taken; null: it would, or it is not known yet. */
function useProblem(key: string, typed: string, changed: boolean): string | null {
  const { ask } = useModel();
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    setProblem(null);
    if (!changed || typed.trim() === '') return;
    let stale = false;
    const timer = setTimeout(() => {
      void ask('checkSetting', { key, yaml: typed }).then((answer) => {
        if (!stale) setProblem(answer.ok ? answer.value.problem : answer.error.message);
      });
    }, REST_MS);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [ask, key, typed, changed]);
  return problem;
}

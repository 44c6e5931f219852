import { useEffect, useRef } from 'react';

interface QuestionProps {
  readonly name: string;
  readonly text: string;
  readonly no: { readonly label: string; readonly act: () => void };
  readonly yes: { readonly label: string; readonly act: () => void; readonly running?: boolean };
}

/** Asked in place, and safe by default: the focus is on leaving it as it is, and Escape leaves it too. */
export function Question({ name, text, no, yes }: QuestionProps) {
  const leave = useRef<HTMLButtonElement>(null);
  useEffect(() => leave.current?.focus(), []);
  return (
    <div
      className="refusal"
      role="alertdialog"
      aria-label={name}
      onKeyDown={(event) => {
        if (event.key === 'Escape') no.act();
      }}
    >
      <p>{text}</p>
      <div className="buttons">
        <button type="button" ref={leave} onClick={no.act}>
          {no.label}
        </button>
        <button
          type="button"
          className="danger"
          aria-busy={yes.running === true}
          disabled={yes.running === true}
          onClick={yes.act}
        >
          {yes.label}
        </button>
      </div>
    </div>
  );
}

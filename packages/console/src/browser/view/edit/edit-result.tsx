import { printYaml, withoutManagedFields } from '../../model/yaml.ts';
import { Button, Fault } from '../parts/basics.tsx';
import { ChangeList, ThreeWayList } from '../parts/changes.tsx';
import type { Editing, Refusal, Result } from './editing-state.ts';

/** What the server said of a text, and the ways on from there. */
export function EditResult(props: {
  readonly editing: Editing;
  readonly goTo: (line: number) => void;
}) {
  const { editing, goTo } = props;
  const { result } = editing;
  return (
    <div class="result" aria-live="polite">
      <Said {...{ editing, goTo, result }} />
    </div>
  );
}

function Said(props: {
  readonly editing: Editing;
  readonly goTo: (line: number) => void;
  readonly result: Result;
}) {
  const { editing, goTo, result } = props;
  switch (result.kind) {
    case 'none':
      return null;
    case 'busy':
      return <p>{result.text}</p>;
    case 'saved':
      return (
        <>
          <p class="good">Saved.</p>
          <Warnings texts={result.warnings} />
        </>
      );
    case 'valid':
      return (
        <>
          <p class="good">The server would accept this. Nothing has been saved.</p>
          <Warnings texts={result.warnings} />
          <ChangeList changes={result.changes} none="It changes nothing." />
        </>
      );
    case 'changed':
      return <Changed {...{ editing, result }} />;
    case 'refused':
      return <Refused {...{ editing, goTo }} outcome={result.outcome} />;
  }
}

function Warnings(props: { readonly texts: readonly string[] }) {
  return (
    <>
      {props.texts.map((text) => (
        <p key={text} class="warning">
          {text}
        </p>
      ))}
    </>
  );
}

function Refused(props: {
  readonly editing: Editing;
  readonly goTo: (line: number) => void;
  readonly outcome: Refusal;
}) {
  const { editing, goTo, outcome } = props;
  return (
    <>
      <Fault>{outcome.message}</Fault>
      {outcome.kind === 'invalid' && outcome.faults.length > 0 && (
        <ul class="faults">
          {outcome.faults.map(({ field, message, line }) => (
            <li key={field + message}>
              {line !== undefined && (
                <button type="button" class="step" onClick={() => goTo(line)}>
                  Line {line}
                </button>
              )}
              {field !== '' && <code> {field}</code>} {message}
            </li>
          ))}
        </ul>
      )}
      {outcome.kind === 'owned' && (
        <>
          <ul class="faults">
            {outcome.conflicts.map(({ field, message }) => (
              <li key={field}>
                <code>{field}</code> {message}
              </li>
            ))}
          </ul>
          <Button act={() => editing.save('forced')} class="danger">
            Take these fields over
          </Button>
        </>
      )}
    </>
  );
}

/** After a conflict: theirs with mine, theirs alone, or mine alone. */
function Changed(props: {
  readonly editing: Editing;
  readonly result: Extract<Result, { kind: 'changed' }>;
}) {
  const { editing, result } = props;
  const { message, ways, theirs, both } = result;
  return (
    <>
      <Fault>{message}</Fault>
      <ThreeWayList ways={ways} />
      <div class="actions">
        {both !== undefined && (
          <Button act={() => editing.begin(theirs, printYaml(both))} class="primary">
            Make my changes to theirs
          </Button>
        )}
        <Button act={() => editing.begin(theirs, withoutManagedFields(theirs.text))}>
          Take theirs
        </Button>
        <Button
          act={() => editing.begin(theirs, editing.text)}
          class="danger"
          title="Discards what others changed and this text does not have"
        >
          Keep mine for the next save
        </Button>
      </div>
    </>
  );
}

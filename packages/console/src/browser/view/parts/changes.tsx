import type { JsonValue } from '@wheelhouse/machinery/browser';
import type { ComponentChildren } from 'preact';
import { type Change, changesText, pathText, type ThreeWay } from '../../model/changes.ts';
import { printJson } from '../../model/json.ts';
import { Scrolled, TableHead } from './basics.tsx';

const changesMax = 200;

/** The differences between two values, one per line. */
export function ChangeList(props: { readonly changes: readonly Change[]; readonly none: string }) {
  const { changes, none } = props;
  if (changes.length === 0) return <p>{none}</p>;
  return (
    <ChangeTable heads={['Field', 'Before', 'After']} all={changes.length}>
      {changes.slice(0, changesMax).map((change) => (
        <tr key={pathText(change.path)}>
          <ChangeCells change={change} />
        </tr>
      ))}
    </ChangeTable>
  );
}

/** The same differences as plain text for copying. */
export function ChangeText(props: { readonly changes: readonly Change[] }) {
  return (
    <details>
      <summary>As text</summary>
      <Scrolled label="Changes as text">
        <pre>{changesText(props.changes)}</pre>
      </Scrolled>
    </details>
  );
}

const byTexts = { mine: 'you', theirs: 'others', both: 'both' } as const;

/** The changes of two writers to one object. */
export function ThreeWayList(props: { readonly ways: readonly ThreeWay[] }) {
  const { ways } = props;
  return (
    <ChangeTable heads={['Changed by', 'Field', 'Before', 'After']} all={ways.length}>
      {ways.slice(0, changesMax).map(({ change, by }, index) => (
        <tr key={index}>
          <td class={by}>{byTexts[by]}</td>
          <ChangeCells change={change} />
        </tr>
      ))}
    </ChangeTable>
  );
}

function ChangeCells(props: { readonly change: Change }) {
  const { path, before, after } = props.change;
  return (
    <>
      <td>
        <code>{pathText(path)}</code>
      </td>
      <td class="before">
        <Value value={before} />
      </td>
      <td class="after">
        <Value value={after} />
      </td>
    </>
  );
}

function Value(props: { readonly value: JsonValue | undefined }) {
  const { value } = props;
  return value === undefined ? <em>none</em> : <pre>{printJson(value)}</pre>;
}

function ChangeTable(props: {
  readonly heads: readonly string[];
  readonly all: number;
  readonly children: ComponentChildren;
}) {
  const remaining = props.all - changesMax;
  return (
    <Scrolled label="Changes">
      <table class="changes">
        <TableHead columns={props.heads} />
        <tbody>{props.children}</tbody>
      </table>
      {remaining > 0 && <p>and {remaining} more</p>}
    </Scrolled>
  );
}

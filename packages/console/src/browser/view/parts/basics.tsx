import { humanDuration } from '@wheelhouse/machinery/browser';
import type { ComponentChildren, JSX, RefObject } from 'preact';
import { useContext, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Propagation } from '../../model/actions.ts';
import { messageOf } from '../../model/failure.ts';
import { hashOf, type Route } from '../../model/route.ts';
import type { TableState } from '../../model/table-store.ts';
import { AppContext, useApp, useModule, useNow } from './app.ts';

/** A link to a page of the console; there are no other links. */
export function Link(props: {
  readonly to: Route;
  readonly class?: string;
  readonly title?: string | undefined;
  readonly 'aria-current'?: 'page' | undefined;
  readonly onFocus?: () => void;
  readonly children: ComponentChildren;
}) {
  const { to, ...rest } = props;
  return <a {...rest} href={hashOf(to)} />;
}

/**
 * A button that is disabled while its action runs. With a refusal it is unavailable but can be
 * focused, so that screen readers read the reason, which is also its tooltip.
 */
export function Button(
  props: { readonly act: () => unknown; readonly refusal?: string | undefined } & Omit<
    JSX.IntrinsicElements['button'],
    'onClick' | 'ref' | 'type'
  >,
) {
  const { act, disabled, refusal, ...rest } = props;
  const [isBusy, setBusy] = useState(false);
  if (refusal !== undefined) {
    const { class: className, children } = rest;
    return <Refused {...{ refusal, class: className, children }} />;
  }
  const click = (): void => {
    const outcome = act();
    if (!(outcome instanceof Promise)) return;
    setBusy(true);
    void outcome.catch(() => {}).then(() => setBusy(false));
  };
  return <button type="button" {...rest} disabled={disabled === true || isBusy} onClick={click} />;
}

/** An action that the user may not perform; using it announces the reason. */
export function Refused(props: {
  readonly refusal: string;
  readonly class?: JSX.IntrinsicElements['button']['class'];
  readonly children?: ComponentChildren;
}) {
  const { refusal, class: className, children } = props;
  const app = useContext(AppContext);
  const id = useId();
  return (
    <>
      <button
        type="button"
        class={className}
        aria-disabled="true"
        aria-describedby={id}
        title={refusal}
        onClick={() => app?.announce(refusal)}
      >
        {children}
      </button>
      <span id={id} hidden>
        {refusal}
      </span>
    </>
  );
}

/** An input with its label. */
export function Field(props: {
  readonly label: string;
  readonly class?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <label class={`field ${props.class ?? ''}`}>
      <span>{props.label}</span>
      {props.children}
    </label>
  );
}

/** A text input. */
export function TextInput(props: {
  readonly value: string;
  readonly onText: (text: string) => void;
  /** Called when the input loses focus or Enter is pressed. */
  readonly onCommit?: ((text: string) => void) | undefined;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
  readonly placeholder?: string;
  readonly label?: string;
  readonly isSearch?: boolean;
  readonly isRequired?: boolean;
  /** The id of a `datalist`. */
  readonly suggestions?: string;
  readonly place?: RefObject<HTMLInputElement | null>;
}) {
  const { value, onText, onCommit, onKeyDown, placeholder, label, suggestions, place } = props;
  return (
    <input
      type={props.isSearch === true ? 'search' : 'text'}
      autocomplete="off"
      spellcheck={false}
      required={props.isRequired === true}
      aria-label={label}
      list={suggestions}
      {...(place === undefined ? {} : { ref: place })}
      {...{ value, placeholder, onKeyDown }}
      onChange={(event) => onCommit?.(event.currentTarget.value)}
      onInput={(event) => onText(event.currentTarget.value)}
    />
  );
}

/** A checkbox. */
export function Toggle(props: {
  readonly label: string;
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
}) {
  return (
    <label class="toggle">
      <input
        type="checkbox"
        checked={props.isOn}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />
      <span>{props.label}</span>
    </label>
  );
}

/** A select of several options. */
export function Choice<T extends string>(props: {
  readonly label: string;
  readonly options: readonly (readonly [value: T, label: string])[];
  readonly value: T;
  readonly onChange: (value: T) => void;
}) {
  const { label, options, value, onChange } = props;
  const change = (chosen: string): void => {
    const option = options.find(([choice]) => choice === chosen);
    if (option !== undefined) onChange(option[0]);
  };
  return (
    <Field label={label}>
      <select value={value} onChange={(event) => change(event.currentTarget.value)}>
        {options.map(([choice, text]) => (
          <option key={choice} value={choice}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

/**
 * A text input that suggests namespaces, since not every user may list them; `several` accepts a
 * comma-separated list.
 */
export function NamespaceInput(props: {
  readonly value: string;
  readonly placeholder: string;
  readonly several?: boolean;
  readonly onText: (text: string) => void;
  readonly onCommit?: (text: string) => void;
}) {
  const { value, placeholder, several = false, onText, onCommit } = props;
  const { workspace } = useApp();
  const id = useId();
  const before = several ? value.slice(0, value.lastIndexOf(',') + 1) : '';
  return (
    <Field label={several ? 'Namespaces' : 'Namespace'}>
      <TextInput {...{ value, placeholder, onText, onCommit, suggestions: id }} />
      <datalist id={id}>
        {workspace.namespaces.map((name) => (
          <option key={name} value={before + name} />
        ))}
      </datalist>
    </Field>
  );
}

/** A form that the browser never submits. */
export function Form(props: {
  readonly class?: string;
  readonly role?: 'search';
  readonly submit: () => unknown;
  readonly children: ComponentChildren;
}) {
  return (
    <form
      class={props.class}
      role={props.role}
      onSubmit={(event) => {
        event.preventDefault();
        void props.submit();
      }}
    >
      {props.children}
    </form>
  );
}

/** A modal dialog; the browser traps focus in it and closes it on Escape. */
export function Modal(props: {
  readonly label: string;
  readonly class?: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const { label, onClose, children } = props;
  const place = useRef<HTMLDialogElement>(null);
  const isOpen = useRef(true);
  // Other effects end after the dialog is removed; closing returns the focus only before.
  useLayoutEffect(() => {
    const { current } = place;
    current?.showModal();
    return () => {
      isOpen.current = false;
      current?.close();
    };
  }, []);
  const close = (): void => {
    if (isOpen.current) onClose();
  };
  return (
    <dialog
      ref={place}
      class={props.class}
      aria-label={label}
      onClose={close}
      onCancel={close}
      onMouseDown={(event) => {
        if (event.target === place.current) onClose();
      }}
    >
      {children}
    </dialog>
  );
}

/** A confirmation dialog; `act` resolves with an error message, or with undefined on success. */
export function ActionDialog(props: {
  readonly title: string;
  readonly action: string;
  readonly isDangerous?: boolean;
  readonly act: () => Promise<string | undefined>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const { title, action, act, onClose, children } = props;
  const [fault, setFault] = useState('');
  const [isBusy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    const refusal = await act().catch(messageOf);
    setBusy(false);
    if (refusal === undefined) onClose();
    else setFault(refusal);
  };
  return (
    <Modal label={title} onClose={onClose}>
      <Form submit={run}>
        <h2>{title}</h2>
        {children}
        {fault !== '' && <Fault>{fault}</Fault>}
        <div class="actions">
          <Button act={onClose}>Cancel</Button>
          <button
            type="submit"
            class={props.isDangerous === true ? 'danger solid' : 'primary'}
            disabled={isBusy}
          >
            {action}
          </button>
        </div>
      </Form>
    </Modal>
  );
}

/** An error message, announced immediately. */
export function Fault(props: { readonly children: ComponentChildren }) {
  return (
    <p class="fault" role="alert">
      {props.children}
    </p>
  );
}

/** A view whose module is loaded when it is first needed. */
export function Loaded<T>(props: {
  readonly load: () => Promise<T>;
  readonly draw: (module: T) => JSX.Element;
}) {
  const { module, hasFailed } = useModule(props.load);
  if (module !== undefined) return props.draw(module);
  if (hasFailed !== true) return <p role="status">Loading…</p>;
  return (
    <>
      <Fault>
        A part of the console cannot be loaded: the server is unreachable, or has been upgraded.
      </Fault>
      <Button act={() => location.reload()}>Reload the page</Button>
    </>
  );
}

/** The row of column names of a table. */
export function TableHead(props: { readonly columns: readonly string[] }) {
  return (
    <thead>
      <tr>
        {props.columns.map((column) => (
          <th key={column} scope="col">
            {column}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** A horizontally scrollable region that supports the keyboard. */
export function Scrolled(props: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <div class="scroll" role="region" aria-label={props.label} tabIndex={0}>
      {props.children}
    </div>
  );
}

/** A message for an empty region. */
export function Empty(props: { readonly children: ComponentChildren }) {
  return <p class="empty">{props.children}</p>;
}

/** The initials of a kind on its color. */
export function KindMark(props: { readonly kind: string; readonly group: string }) {
  const { kind, group } = props;
  const capitals = kind.replace(/[^A-Z]/g, '');
  const initials = capitals.length > 1 ? capitals.slice(0, 2) : kind.slice(0, 2);
  let hash = 7;
  for (const letter of group) hash = (hash * 31 + letter.charCodeAt(0)) % 8;
  return (
    <span class={`mark mark-${hash}`} aria-hidden="true">
      {initials}
    </span>
  );
}

const phaseTexts: Readonly<Record<TableState['phase'], string>> = {
  listing: 'Loading…',
  live: 'Live',
  waiting: 'Not connected',
  static: 'Not live',
  refused: 'Refused',
};

/** Whether a list or object is updated live, or else the reason why not. */
export function LiveStatus(props: { readonly state: TableState }) {
  const { phase, message, retryInMs } = props.state;
  const retry = retryInMs === undefined ? '' : `, retrying in ${Math.ceil(retryInMs / 1000)} s`;
  return (
    <output class={`state ${phase}`} aria-live="polite">
      {`${phaseTexts[phase]}${message === undefined ? '' : `: ${message}`}${retry}`}
    </output>
  );
}

/** The time since a timestamp; empty without one. */
export function Age(props: { readonly time: string }) {
  const nowMs = useNow(10_000);
  const atMs = Date.parse(props.time);
  if (Number.isNaN(atMs)) return null;
  return (
    <time dateTime={props.time} title={props.time}>
      {humanDuration(Math.max(0, nowMs - atMs))} ago
    </time>
  );
}

const propagations: readonly (readonly [string, string])[] = [
  ['', 'Default for this kind'],
  ['Background', 'Background: delete dependents afterward'],
  ['Foreground', 'Foreground: delete dependents first'],
  ['Orphan', 'Orphan: keep dependents'],
];

/** The treatment of a deleted object's dependents. */
export function PropagationChoice(props: {
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  return <Choice label="Dependents" options={propagations} {...props} />;
}

/** The propagation policy of an option; undefined for the kind's default. */
export function asPropagation(value: string): Propagation | undefined {
  return value === 'Background' || value === 'Foreground' || value === 'Orphan' ? value : undefined;
}

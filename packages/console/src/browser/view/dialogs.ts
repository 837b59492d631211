import {
  type Deletion,
  deleteObject,
  type Propagation,
  readScale,
  writeScale,
} from '../model/actions.ts';
import { messageOf } from '../model/failure.ts';
import type { ObjectName } from '../model/kinds.ts';
import type { PageContext } from './context.ts';
import { button, choice, element, fill, form, labelled } from './element.ts';

/**
 * Shows a dialog over the page until it is closed; the browser keeps the keyboard within it. `act`
 * gives nothing when all is done, or what stands against it.
 */
function openDialog(options: {
  readonly title: string;
  readonly body: readonly (HTMLElement | string)[];
  readonly action: string;
  readonly act: () => Promise<string | undefined>;
}): void {
  const fault = element('p', { class: 'fault', role: 'alert' });
  const submit = element('button', { type: 'submit', class: 'primary' }, options.action);
  const dialog = element('dialog', { 'aria-label': options.title });
  const close = (): void => {
    dialog.close();
    dialog.remove();
  };
  const run = async (): Promise<void> => {
    submit.disabled = true;
    const refusal = await options.act().catch(messageOf);
    submit.disabled = false;
    if (refusal === undefined) close();
    else fill(fault, refusal);
  };
  const content = form(
    {},
    () => void run(),
    element('h2', {}, options.title),
    ...options.body,
    fault,
    element('div', { class: 'actions' }, submit, button('Cancel', close)),
  );
  dialog.append(content);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const propagations: readonly (readonly [Propagation | '', string])[] = [
  ['', 'as the kind does by itself'],
  ['Background', 'Background: what it owns goes after it'],
  ['Foreground', 'Foreground: what it owns goes before it'],
  ['Orphan', 'Orphan: what it owns stays'],
];

/** Asks how an object is to be deleted, and deletes it: this very one, as it was seen if wanted. */
export function deleteDialog(
  context: PageContext,
  options: {
    readonly target: ObjectName;
    /** What was seen of it; undefined when the user may not read it. */
    readonly seen: { readonly uid: string; readonly resourceVersion: string } | undefined;
  },
): void {
  const { target, seen } = options;
  const propagation = choice(propagations, '');
  const unchanged = element('input', { type: 'checkbox', checked: true });
  const grace = element('input', { type: 'number', min: '0', placeholder: 'as it says itself' });
  openDialog({
    title: `Delete ${target.kind.kind} ${target.name}?`,
    body: [
      element('p', {}, 'This cannot be taken back.'),
      labelled('Dependents', propagation),
      ...(seen === undefined ? [] : [labelled('Only if it is as it was shown', unchanged)]),
      labelled('Seconds of grace', grace),
    ],
    action: 'Delete',
    async act() {
      const wanted = propagation.value as Propagation | '';
      const how: Deletion = {
        ...(seen === undefined ? {} : { uid: seen.uid }),
        ...(wanted === '' ? {} : { propagation: wanted }),
        ...(seen !== undefined && unchanged.checked
          ? { resourceVersion: seen.resourceVersion }
          : {}),
        ...(grace.value === '' ? {} : { gracePeriodSeconds: Number(grace.value) }),
      };
      const outcome = await deleteObject(context.api, target, how);
      context.announce(`${target.name} is ${outcome === 'gone' ? 'deleted' : 'being deleted'}.`);
      return undefined;
    },
  });
}

/** Asks for the number of replicas; opens once the present one is known. Never rejects. */
export async function scaleDialog(context: PageContext, target: ObjectName): Promise<void> {
  try {
    let scale = await readScale(context.api, target);
    const wanted = element('input', {
      type: 'number',
      min: '0',
      required: true,
      value: String(scale.wanted),
    });
    const present = element('p', {}, `There are ${scale.present} now.`);
    openDialog({
      title: `Scale ${target.name}`,
      body: [present, labelled('Replicas', wanted)],
      action: 'Scale',
      async act() {
        scale = await writeScale(context.api, target, { ...scale, wanted: Number(wanted.value) });
        context.announce(`${target.name} is to have ${scale.wanted} replicas.`);
        return undefined;
      },
    });
  } catch (error) {
    context.announce(messageOf(error));
  }
}

import { messageOf } from '../model/failure.ts';
import type { Kind } from '../model/kinds.ts';
import { type Explained, type ExplainedField, explain, type KindSchema } from '../model/schema.ts';
import type { PageContext } from './context.ts';
import { button, element, fill } from './element.ts';

/** What the fields of a kind mean, beside the text that has them. */
export interface ExplainPanel {
  readonly root: HTMLElement;
  /** Shows a field; the nearest one around it that the kind has. */
  show(path: readonly string[]): void;
}

/** Loads the kind's schema and shows its fields, one level at a time. */
export function explainPanel(context: PageContext, kind: Kind): ExplainPanel {
  const root = element('aside', { class: 'explain', 'aria-label': 'What the fields mean' });
  let schema: KindSchema | undefined;
  let shown: readonly string[] = [];
  const draw = (): void => {
    if (schema !== undefined) fill(root, ...drawn(schema, { kind, path: shown, show }));
  };
  const show = (path: readonly string[]): void => {
    shown = path;
    while (schema !== undefined && explain(schema, shown) === undefined) shown = shown.slice(0, -1);
    draw();
  };
  fill(root, element('p', {}, 'Reading the schema…'));
  context.schemas.of(kind).then(
    (found) => {
      schema = found;
      if (found === undefined)
        fill(root, element('p', {}, 'No schema is published for this kind.'));
      else show(shown);
    },
    (error: unknown) => fill(root, element('p', { class: 'fault' }, messageOf(error))),
  );
  return { root, show };
}

interface Drawing {
  readonly kind: Kind;
  readonly path: readonly string[];
  readonly show: (path: readonly string[]) => void;
}

function drawn(schema: KindSchema, { kind, path, show }: Drawing): HTMLElement[] {
  const explained = explain(schema, path) as Explained;
  const steps = [kind.kind, ...path].map((name, index) =>
    button(name, () => show(path.slice(0, index)), { class: 'step' }),
  );
  const fields = explained.fields.map((field) => [
    element(
      'dt',
      {},
      field.isNested
        ? button(field.name, () => show([...path, field.name]), { class: 'step' })
        : element('code', {}, field.name),
      element('small', {}, ` ${field.type}`),
      field.isRequired && element('em', {}, ' required'),
    ),
    element('dd', {}, ...detailsOf(field)),
  ]);
  return [
    element('nav', { 'aria-label': 'Field' }, ...steps),
    element(
      'p',
      {},
      element('code', {}, explained.type),
      explained.own?.isRequired === true && element('em', {}, ' required'),
    ),
    element('p', { class: 'description' }, path.length === 0 && explained.description),
    ...(explained.own === undefined ? [] : detailsOf(explained.own)),
    element('dl', {}, ...fields.flat()),
  ];
}

function detailsOf({ description, values, standard, rules }: ExplainedField): HTMLElement[] {
  return [
    ...(description === '' ? [] : [element('p', {}, description)]),
    ...(values.length === 0 ? [] : [element('p', {}, `One of: ${values.join(', ')}`)]),
    ...(standard === undefined ? [] : [element('p', {}, `Default: ${standard}`)]),
    ...(rules.length === 0 ? [] : [element('p', { class: 'rules' }, rules.join(', '))]),
  ];
}

import type { LoadedObject } from '../model/object.ts';
import { fieldOwners, ownersByField } from '../model/ownership.ts';
import { printJson, readYaml, withoutManagedFields } from '../model/yaml.ts';
import type { PageContext } from './context.ts';
import { button, element, fill, labelled } from './element.ts';

/** Who manages fields is seldom wanted; the choice holds for as long as the page is loaded. */
let managedFields: 'shown' | 'hidden' = 'hidden';

/** The server's own text. */
export function yamlView(context: PageContext, object: LoadedObject): HTMLElement {
  return textView(context, object, (text) => text);
}

/** The same as JSON. */
export function jsonView(context: PageContext, object: LoadedObject): HTMLElement {
  return textView(context, object, (text) => {
    const read = readYaml(text);
    return read.fault === undefined ? printJson(read.value) : text;
  });
}

function textView(
  context: PageContext,
  { text }: LoadedObject,
  shape: (text: string) => string,
): HTMLElement {
  const shown = element('pre', {
    class: 'text',
    tabindex: '0',
    role: 'region',
    'aria-label': 'Text',
  });
  const toggle = element('input', { type: 'checkbox', checked: managedFields === 'shown' });
  const draw = (): void =>
    fill(shown, shape(managedFields === 'shown' ? text : withoutManagedFields(text)));
  toggle.addEventListener('change', () => {
    managedFields = toggle.checked ? 'shown' : 'hidden';
    draw();
  });
  draw();
  const copy = button('Copy', () => context.copy(shown.textContent ?? ''));
  return element(
    'div',
    {},
    element('div', { class: 'bar' }, labelled('With managed fields', toggle), copy),
    shown,
  );
}

/** Which writer owns which field. */
export function fieldsView({ value }: LoadedObject): HTMLElement {
  const owners = fieldOwners(value);
  if (owners.length === 0) return element('p', {}, 'Nobody’s ownership of fields is recorded.');
  const rows = [...ownersByField(owners)].map(([field, by]) =>
    element(
      'tr',
      {},
      element('td', {}, element('code', {}, field)),
      element('td', {}, by.map(ownerText).join(', ')),
    ),
  );
  const writers = owners.map((owner) =>
    element('li', {}, element('strong', {}, owner.manager), ` ${owner.operation} ${owner.time}`),
  );
  return element(
    'div',
    {},
    element('ul', {}, ...writers),
    element(
      'table',
      { class: 'grid' },
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          element('th', { scope: 'col' }, 'Field'),
          element('th', { scope: 'col' }, 'Owned by'),
        ),
      ),
      element('tbody', {}, ...rows),
    ),
  );
}

function ownerText(owner: { manager: string; operation: string; subresource: string }): string {
  const { manager, operation, subresource } = owner;
  const of = subresource === '' ? '' : `, ${subresource}`;
  return `${manager} (${operation.toLowerCase()}${of})`;
}

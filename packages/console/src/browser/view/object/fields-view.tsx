import type { LoadedObject } from '../../model/object.ts';
import { type FieldOwner, fieldOwners, ownersByField } from '../../model/ownership.ts';
import { Age } from '../parts/age.tsx';
import { Empty, Scrolled } from '../parts/basics.tsx';

/** Which manager owns which field. */
export function FieldsView(props: { readonly object: LoadedObject }) {
  const owners = fieldOwners(props.object.value);
  if (owners.length === 0) return <Empty>No ownership of fields is recorded.</Empty>;
  return (
    <>
      <ul class="cards managers">
        {owners.map((owner) => (
          <li key={keyOf(owner)} class="card">
            <strong>{owner.manager}</strong>
            <span class="chip">{owner.operation}</span>
            {owner.subresource !== '' && <span class="chip">{owner.subresource}</span>}
            <span class="faint">
              {owner.fields.length} field{owner.fields.length === 1 ? '' : 's'}{' '}
              <Age time={owner.time} />
            </span>
          </li>
        ))}
      </ul>
      <Scrolled label="Owners by fields">
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Owned by</th>
            </tr>
          </thead>
          <tbody>
            {[...ownersByField(owners)].map(([field, by]) => (
              <tr key={field}>
                <td>
                  <code>{field}</code>
                </td>
                <td>{by.map(ownerText).join(', ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolled>
    </>
  );
}

function keyOf({ manager, operation, subresource }: FieldOwner): string {
  return `${manager} ${operation} ${subresource}`;
}

function ownerText({ manager, operation, subresource }: FieldOwner): string {
  const of = subresource === '' ? '' : `, ${subresource}`;
  return `${manager} (${operation.toLowerCase()}${of})`;
}

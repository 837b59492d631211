import type { JsonObject } from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';

/** The members of which one is wanted, as another member says: by type, whatever its version. */
const unions: Readonly<Record<string, readonly [discriminator: string, members: string[]]>> = {
  'core.AppArmorProfile': ['type', ['localhostProfile']],
  'core.SeccompProfile': ['type', ['localhostProfile']],
  'flowcontrol.LimitResponse': ['type', ['queuing']],
  'flowcontrol.PriorityLevelConfigurationSpec': ['type', ['exempt', 'limited']],
  'flowcontrol.Subject': ['kind', ['group', 'serviceAccount', 'user']],
};

/** What a definition says of the union that its type is; nothing of most. */
export function unionJson({ typeName = '' }: Schema): JsonObject {
  const [directory, , name] = typeName.split('.');
  const key = `${directory}.${name}`;
  const [discriminator, members] = (Object.hasOwn(unions, key) && unions[key]) || [];
  if (discriminator === undefined || members === undefined) return {};
  const values = members.map((member) => [member, member.replace(/^./, upperCase)]);
  const union = { discriminator, 'fields-to-discriminateBy': Object.fromEntries(values) };
  return { 'x-kubernetes-unions': [union] };
}

const upperCase = (letter: string) => letter.toUpperCase();

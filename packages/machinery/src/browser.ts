/** The exports of the package that do not depend on Node, for code that runs in a browser. */

export type { Clock, Timer } from './base/clock.ts';
export {
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  parseExactJson,
  setMember,
} from './base/json.ts';
export { runInOnePiece } from './base/work.ts';
export {
  acceptedDiscoveryGroups,
  acceptedMetaGroups,
  type Dialect,
  dialectNames,
  dialectOf,
} from './dialect.ts';
export {
  dereference,
  descriptionOf,
  itemOf,
  propertiesOf,
  schemaOfKind,
  typeName,
} from './meta/published-schema.ts';
export { humanDuration } from './meta/times.ts';
export { itemsOfList } from './meta/types.ts';

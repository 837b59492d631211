/** What tests, benchmarks, and the siege need besides the public index. No promise of stability. */

export { accessMatrix, canI, matrixVerbs, ownRules, whoAmI } from './browser/model/access.ts';
export { deleteObject, isScalable, readScale, writeScale } from './browser/model/actions.ts';
export { type Api, type ApiRequest, createApi } from './browser/model/api.ts';
export { changesBetween, pathText, rebased, threeWay } from './browser/model/changes.ts';
export { type Discovered, openDiscovery } from './browser/model/discovery.ts';
export { type Edit, type EditOutcome, saveEdit, validateEdit } from './browser/model/editing.ts';
export { ApiFailure, Unreachable } from './browser/model/failure.ts';
export { type Kind, type ObjectName, resourceName } from './browser/model/kinds.ts';
export { getCommand, objectCommand } from './browser/model/kubectl.ts';
export { loadObject, ownersOf } from './browser/model/object.ts';
export { fieldOwners, ownersByField } from './browser/model/ownership.ts';
export type { Fetch } from './browser/model/ports.ts';
export { hashOf, type Route, routeOf } from './browser/model/route.ts';
export { createSchemaSource, explain } from './browser/model/schema.ts';
export { createSession, type SessionState } from './browser/model/session.ts';
export { cellText, sorted, type TableRow } from './browser/model/table.ts';
export {
  openTable,
  type TableQuery,
  type TableSnapshot,
  type TableStore,
} from './browser/model/table-store.ts';
export { shown, whoCan } from './browser/model/who-can.ts';
export {
  lineOfField,
  printJson,
  printYaml,
  readYaml,
  withoutManagedFields,
} from './browser/model/yaml.ts';
export { createStaticFiles } from './static-files.ts';

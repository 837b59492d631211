/** What tests, benchmarks, and the siege need besides the public index. No promise of stability. */

export { accessMatrix, canI, matrixVerbs, ownRules, whoAmI } from './browser/model/access.ts';
export { deleteObject, isScalable, readScale, writeScale } from './browser/model/actions.ts';
export { type Api, type ApiRequest, createApi } from './browser/model/api.ts';
export { changesBetween, pathText, rebased, threeWay } from './browser/model/changes.ts';
export { type Discovered, openDiscovery } from './browser/model/discovery.ts';
export { type Edit, type EditOutcome, saveEdit, validateEdit } from './browser/model/editing.ts';
export { ApiFailure, Unreachable } from './browser/model/failure.ts';
export { type Activity, followActivity, followedKinds } from './browser/model/insight/activity.ts';
export { ObjectHistory } from './browser/model/insight/history.ts';
export { countedKinds, countObjects, type KindCount } from './browser/model/insight/inventory.ts';
export { readMetrics, trafficBetween } from './browser/model/insight/metrics.ts';
export { loadTree } from './browser/model/insight/ownership-tree.ts';
export { timelineOf } from './browser/model/insight/timeline.ts';
export { type Kind, type ObjectName, resourceName } from './browser/model/kinds.ts';
export { getCommand, objectCommand } from './browser/model/kubectl.ts';
export { openTables } from './browser/model/merged-table.ts';
export { loadObject, ownersOf } from './browser/model/object.ts';
export { fieldOwners, ownersByField } from './browser/model/ownership.ts';
export type { Fetch } from './browser/model/ports.ts';
export { hashOf, type Route, routeOf } from './browser/model/route.ts';
export { createSchemaSource, explain, type KindSchema } from './browser/model/schema.ts';
export { createSession, type SessionState } from './browser/model/session.ts';
export { cellText, filtered, sorted, type TableRow } from './browser/model/table.ts';
export {
  openTable,
  type TableQuery,
  type TableSnapshot,
  type TableStore,
} from './browser/model/table-store.ts';
export { shown, whoCan } from './browser/model/who-can.ts';
export { deleteAll } from './browser/model/write/bulk.ts';
export { completionsAt } from './browser/model/write/completion.ts';
export { applyManifests, manifestsIn } from './browser/model/write/manifests.ts';
export { schemaFaults } from './browser/model/write/schema-check.ts';
export {
  lineOfField,
  printJson,
  printYaml,
  readYaml,
  withoutManagedFields,
} from './browser/model/yaml.ts';
export { createStaticFiles, folderSource } from './static-files.ts';

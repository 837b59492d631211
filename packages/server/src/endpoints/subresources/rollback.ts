import { objectAt } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  badRequest,
  type FieldError,
  invalid,
  invalidObject,
  objectOf,
  required,
  textMembers,
  validateAnnotations,
} from '@wheelhouse/machinery';
import { sendValue, successStatus } from '../../answer/respond.ts';
import { consequentPermit } from '../../registry/permit.ts';
import { write } from '../../registry/write.ts';
import { admitVirtual, virtualRequest } from '../body/virtual-body.ts';
import type { ApiCall } from '../call.ts';
import { writeContext } from '../write.ts';

/**
 * POST to `rollback` of a Deployment, which releases up to 1.15 served (VER-2): records the
 * requested revision for the Deployment's controller. Throws 400 if the body names another
 * Deployment, 422 for an invalid body, and 404 for a missing Deployment.
 */
export async function rollbackEndpoint(call: ApiCall): Promise<void> {
  const { context, target } = call;
  // The names of both groups are also the directories of their facts.
  const typeName = `${target.def.group}.${target.version.version}.DeploymentRollback`;
  const { object, options } = await virtualRequest(call, typeName);
  checkRollback(object);
  if (object['name'] !== target.name) {
    throw badRequest('name in URL does not match name in DeploymentRollback object');
  }
  await admitVirtual(call, { object, options });
  const permit = consequentPermit(call.permit, 'update', target);
  await write(context.registry, {
    operation: 'update',
    admission: 'done',
    target,
    context: { ...writeContext(call, options), permit },
    transform: ({ current }) => rolledBack(asApiObject(current), object),
    source: 'merged',
    onAbsent: 'refuse',
  });
  const message = `rollback request for deployment ${JSON.stringify(target.name)} succeeded`;
  // As in those releases, the code in the body differs from that of the answer.
  await sendValue(call, { status: 201, value: successStatus({ message, code: 200 }) });
}

function checkRollback(rollback: ApiObject): void {
  const name = typeof rollback['name'] === 'string' ? rollback['name'] : '';
  const errors: FieldError[] = validateAnnotations(annotationsOf(rollback), 'updatedAnnotations');
  if (name === '') errors.push(required('name', 'name is required'));
  const revision = Number(objectAt(rollback, 'rollbackTo')?.['revision'] ?? 0);
  if (revision < 0) {
    const detail = 'must be greater than or equal to 0';
    errors.push(invalid('rollback.version', revision, detail));
  }
  if (errors.length > 0) {
    throw invalidObject({ group: 'apps', kind: 'DeploymentRollback' }, name, errors);
  }
}

const annotationsOf = (rollback: ApiObject): Record<string, string> =>
  textMembers(rollback['updatedAnnotations']);

function rolledBack(deployment: ApiObject, rollback: ApiObject): ApiObject {
  const annotations = { ...deployment.metadata.annotations, ...annotationsOf(rollback) };
  if (Object.keys(annotations).length > 0) deployment.metadata.annotations = annotations;
  const spec = objectOf(deployment['spec']);
  const rollbackTo = { ...objectAt(rollback, 'rollbackTo') };
  return { ...deployment, spec: { ...spec, rollbackTo } };
}

import { type Dialect, dialectNames, dialectOf } from '../dialect.ts';
import type { Session } from './session.ts';

/** The dialect the server speaks, which the group of its RBAC kinds gives away. */
export async function serverDialect(session: Session): Promise<Dialect> {
  const { group } = await session.resourceOfKind('ClusterRole');
  const dialects = dialectNames.map(dialectOf);
  return dialects.find((one) => one.group('rbac.authorization') === group) ?? dialects[0]!;
}

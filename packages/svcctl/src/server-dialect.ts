import { type Dialect, dialectNames, dialectOf } from '@wheelhouse/machinery';
import type { Session } from './session.ts';

/** Groups of which a server has one or another, whatever it leaves out. */
const telling = ['rbac.authorization', 'apiextensions', 'coordination', 'authorization'];

/** The dialect the server speaks, which its groups give away; the first where none does. */
export async function serverDialect(session: Session): Promise<Dialect> {
  const { resources } = await session.discovery();
  const served = new Set(resources.map(({ group }) => group));
  const dialects = dialectNames.map(dialectOf);
  const speaks = (dialect: Dialect) => telling.some((stem) => served.has(dialect.group(stem)));
  return dialects.find(speaks) ?? dialects[0]!;
}

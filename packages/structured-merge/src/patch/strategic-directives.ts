/** In an object or an item of a list: `replace`, or `delete`. */
export const directiveMember = '$patch';
/** In an object: the names of all members it is to have. */
export const retainKeysMember = '$retainKeys';
/** `$deleteFromPrimitiveList/finalizers`: which scalars leave a list. */
export const deleteListPrefix = '$deleteFromPrimitiveList';
/** `$setElementOrder/containers`: the order a list is to have, its objects by their keys alone. */
export const elementOrderPrefix = '$setElementOrder';

/** Facts about the types of `imagepolicy`; made by scripts/facts/generate.mjs, do not edit. */
export const imagepolicyFacts = `
@v1alpha1
#ImageReview k c
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ImageReviewSpec
status 3 ImageReviewStatus e o
#ImageReviewSpec
containers 1 []ImageReviewContainerSpec e o l=atomic
annotations 2 {}string e o
namespace 3 string e o
#ImageReviewContainerSpec
image 1 string e o
#ImageReviewStatus
allowed 1 bool
reason 2 string e o
auditAnnotations 3 {}string e o
`;

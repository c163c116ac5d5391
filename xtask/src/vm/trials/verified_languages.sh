# Kept frames of languages, each compared with a complete reading.
failed=
for language in py js java rb php pl lua; do
  began=$SECONDS
  HEAPR=/work/bin/heapr timeout 1500 xtask soak languages ${STACKS:-75000} $language > said 2>&1 || failed="$failed $language"
  sed -u 's/^/= /' said
  echo "= $language: $((SECONDS - began)) s"
done
[ -z "$failed" ] || { echo "= failed:$failed"; exit 1; }

# Kills of recorder, command and program at random moments: nobody else is harmed.
HEAPR=/work/bin/heapr xtask soak kills ${ROUNDS:-200} | sed -u 's/^/= /'
exit ${PIPESTATUS[0]}
